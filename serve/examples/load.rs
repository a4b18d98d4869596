//! A load on a server: requests at a steady rate, each at its time whether those before are answered or not, and how long answers take
//! from then on.
//!
//! ```text
//! cargo load 127.0.0.1:8080 /recommend '{"users": [#]}' [RATE [SECONDS [CONNECTIONS [IDS]]]]
//! ```
//!
//! `#` becomes 1 to IDS in turn. 500 requests a second for 10 seconds over 8 connections, and 1000 ids, if nothing is said.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// What is sent.
struct Load {
    address: String,
    path: String,
    body: String,
    rate: f64,
    requests: usize,
    connections: usize,
    ids: usize,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, body, numbers @ ..] = &words[..] else {
        eprintln!("usage: load ADDRESS PATH BODY [RATE [SECONDS [CONNECTIONS [IDS]]]]");
        std::process::exit(2);
    };
    let number = |at: usize, usual: f64| {
        let given = numbers.get(at).map(|word| word.parse::<f64>());
        given.and_then(Result::ok).filter(|number| *number > 0.0).unwrap_or(usual)
    };
    let rate = number(0, 500.0);
    let load = Load {
        address: address.clone(),
        path: path.clone(),
        body: body.clone(),
        rate,
        requests: (rate * number(1, 10.0)) as usize,
        connections: number(2, 8.0) as usize,
        ids: number(3, 1000.0) as usize,
    };
    let (mut times, failed) = all(&load)?;
    times.sort();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).map_or(0.0, |time| 1e3 * time.as_secs_f64());
    println!(
        "{} answers, {failed} others; milliseconds: median {:.2}, 90 % {:.2}, 99 % {:.2}, 99.9 % {:.2}, longest {:.2}",
        times.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        times.last().map_or(0.0, |time| 1e3 * time.as_secs_f64())
    );
    Ok(())
}

/// Returns the times of all answers, and how many were none. Each connection has a thread, as timers of an asynchronous runtime are
/// late by a millisecond.
fn all(load: &Load) -> io::Result<(Vec<Duration>, usize)> {
    let begin = Instant::now() + Duration::from_millis(50);
    let (mut times, mut failed) = (Vec::new(), 0);
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..load.connections).map(|first| scope.spawn(move || one_connection(load, first, begin))).collect();
        for thread in threads {
            let ended = thread.join().map_err(|_| io::Error::other("a connection's thread failed"))?;
            let (of_thread, others) = ended?;
            times.extend(of_thread);
            failed += others;
        }
        Ok((times, failed))
    })
}

fn one_connection(load: &Load, first: usize, begin: Instant) -> io::Result<(Vec<Duration>, usize)> {
    let mut stream = TcpStream::connect(&load.address)?;
    stream.set_nodelay(true)?;
    let (mut times, mut failed) = (Vec::new(), 0);
    for request in (first..load.requests).step_by(load.connections) {
        let body = load.body.replace('#', &(request % load.ids + 1).to_string());
        let head =
            format!("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", load.path, load.address, body.len());
        let due = begin + Duration::from_secs_f64(request as f64 / load.rate);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        stream.write_all((head + &body).as_bytes())?;
        match read_status(&mut stream)? {
            200 => times.push(due.elapsed()),
            _ => failed += 1,
        }
    }
    Ok((times, failed))
}

/// Reads an answer whole, and returns its status.
fn read_status(stream: &mut TcpStream) -> io::Result<u16> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16384]);
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server ended the connection"));
        }
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            return Ok(head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0));
        }
    }
}
