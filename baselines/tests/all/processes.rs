//! Servers and clients as processes of their own: this test program starts itself again.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use megagrid_baselines::Error;
use megagrid_baselines::server::{Client, Options, Preset, ServerOptions, Tables, TabletServer};

const ROLE: &str = "MEGAGRID_TEST_ROLE";
const SERVERS: usize = 2;
const CLIENTS: usize = 2;
const THREADS: usize = 2;
const CLOCKS: u32 = 5;

/// What the processes are; a test only where the variable says so.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let ended = match words[..] {
        ["server", number] => serve(number.parse().unwrap()),
        ["client", number, vanish, ..] => train(number.parse().unwrap(), vanish == "vanish", &words[3..]),
        _ => panic!("{role}"),
    };
    match ended {
        Ok(result) => println!("result: {result}"),
        Err(error) => println!("error: {error}"),
    }
}

fn serve(server: usize) -> Result<String, Error> {
    let mut tables = Tables::new();
    tables.add::<i32>(1);
    let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(server, SERVERS, CLIENTS))?;
    println!("address: {}", server.address());
    server.wait()?;
    Ok(server.num_rows().to_string())
}

/// Counts clocks of all threads in four rows.
fn train(client: usize, vanish: bool, servers: &[&str]) -> Result<String, Error> {
    let mut tables = Tables::new();
    let counts = tables.add::<i32>(1);
    let options = Options { client, clients: CLIENTS, ..Options::preset(Preset::Essp, THREADS, 0) };
    let client = Client::connect(servers, &tables, options)?;
    std::thread::scope(|scope| {
        let work = |mut worker: megagrid_baselines::server::Worker| {
            for clock in 0..CLOCKS {
                for row in 0..4 {
                    let count = worker.read(counts, row, 0)?[0];
                    assert!(count >= (clock as usize * CLIENTS * THREADS) as i32);
                    worker.update(counts, row, &[1])?;
                }
                if vanish && clock == 2 {
                    std::process::abort();
                }
                worker.clock()?;
            }
            Ok::<(), Error>(())
        };
        let threads: Vec<_> = client.workers().into_iter().map(|worker| scope.spawn(move || work(worker))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    client.barrier()?;
    Ok(format!("{:?}", client.read_table(counts, CLOCKS)?.values))
}

fn spawn(role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "processes::child", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Starts all processes; returns the last words of servers and clients, in order.
fn run(vanishing: Option<usize>) -> Vec<String> {
    let mut servers: Vec<_> = (0..SERVERS).map(|server| spawn(&format!("server {server}"))).collect();
    let mut outputs: Vec<_> = servers.iter_mut().map(|server| BufReader::new(server.stdout.take().unwrap())).collect();
    let addresses: Vec<String> = outputs.iter_mut().map(|output| after(output, "address: ")).collect();
    let role = |client: usize| {
        let vanish = if vanishing == Some(client) { "vanish" } else { "stay" };
        format!("client {client} {vanish} {}", addresses.join(" "))
    };
    let clients = (0..CLIENTS).map(|client| spawn(&role(client)));
    let clients: Vec<Child> = clients.collect();
    let mut words = Vec::new();
    for output in &mut outputs {
        words.push(rest(output));
    }
    for mut client in clients {
        words.push(rest(client.stdout.as_mut().unwrap()));
        client.wait().unwrap();
    }
    servers.iter_mut().for_each(|server| assert!(server.wait().unwrap().success()));
    words
}

/// Returns what follows a mark, which may not be at the beginning of a line: the test program writes too.
fn after(output: &mut impl BufRead, mark: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "no {mark}");
        if let Some((_, address)) = line.trim().split_once(mark) {
            address.parse::<SocketAddr>().unwrap();
            return address.to_owned();
        }
    }
}

fn rest(output: &mut impl Read) -> String {
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    let line = text.lines().find(|line| line.contains("result: ") || line.contains("error: "));
    line.unwrap_or_default().to_owned()
}

#[test]
fn several_processes_count_together() {
    let words = run(None);
    for server in &words[..SERVERS] {
        assert!(server.contains("result: 2"), "{words:?}");
    }
    for client in &words[SERVERS..] {
        assert!(client.contains("result: [20, 20, 20, 20]"), "{words:?}");
    }
}

#[test]
fn a_process_that_dies_in_a_clock_ends_all_others() {
    let words = run(Some(1));
    for process in &words[..SERVERS + 1] {
        assert!(process.contains("error: client process 1 is lost at clock 2"), "{words:?}");
    }
    assert_eq!(words[SERVERS + 1], "", "the one that died says nothing");
}
