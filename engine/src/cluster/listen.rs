//! The threads of a control connection: one reads it as fast as frames come, so that nobody who sends waits for long; another
//! sends heartbeats. Whatever comes is a sign of life.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use super::frame::{self, FrameError, Message};
use super::link::{CLOSED, Link, describe_io};
use super::shared::Shared;

/// Adds a control connection and starts its threads, which end with it. Refuses a second one to a process, and any once the cluster closes.
pub(super) fn add(shared: &Arc<Shared>, link: Link) -> io::Result<()> {
    let link = Arc::new(link);
    shared.change(|state| {
        if state.closing || state.links[link.process].is_some() {
            return Err(io::ErrorKind::AlreadyExists);
        }
        state.open[link.process] = true;
        state.links[link.process] = Some(link.clone());
        Ok(())
    })?;
    let name = |what: &str| thread::Builder::new().name(format!("megagrid:{what}-{}", link.process));
    let (own, all) = (link.clone(), shared.clone());
    name("listen").spawn(move || listen(&own, &all))?;
    let (own, all) = (link.clone(), shared.clone());
    name("heartbeat").spawn(move || beat(&own, &all))?;
    Ok(())
}

fn beat(link: &Link, shared: &Shared) {
    while shared.stays_open(link.process) {
        if let Ok(_writing) = link.writing.try_lock() {
            // Whoever reads notices when the connection is gone.
            let _ = frame::write(&link.stream, &Message::Heartbeat, &[]);
        }
    }
}

fn listen(link: &Link, shared: &Shared) {
    let mut part = Vec::new();
    let problem = loop {
        match take(link, shared, &mut part) {
            Ok(true) => {}
            Ok(false) => return,
            Err(problem) => break problem,
        }
    };
    shared.closed(link.process, &problem);
    link.close();
}

/// Takes one message. Returns false after the last.
fn take(link: &Link, shared: &Shared, part: &mut Vec<u8>) -> Result<bool, String> {
    let (message, body) = frame::read(&link.stream).map_err(|error| describe(&error))?;
    match message {
        Message::Heartbeat => {}
        Message::Start { job } => shared.started(job),
        Message::Farewell => shared.left(link.process),
        Message::Part { collective, from, total } => {
            if part.is_empty() {
                let total = usize::try_from(total).map_err(|_| "it sent more than fits in memory")?;
                part.try_reserve_exact(total).map_err(|_| "it sent more than fits in memory")?;
            }
            let got = (&link.stream).take(body as u64).read_to_end(part).map_err(|error| describe_io(&error))?;
            if got < body {
                return Err(CLOSED.to_owned());
            }
            if part.len() as u64 >= total {
                shared.arrived(collective, from, std::mem::take(part));
            }
        }
        Message::Stop(reason) => {
            shared.end(&reason, Some(link.process), true);
            return Ok(false);
        }
        Message::Hello(_) | Message::Welcome | Message::Refused(_) => return Err("it sent nonsense".to_owned()),
    }
    Ok(true)
}

fn describe(error: &FrameError) -> String {
    match error {
        FrameError::Io(error) => describe_io(error),
        FrameError::Foreign | FrameError::Protocol(_) => "it sent nonsense".to_owned(),
    }
}
