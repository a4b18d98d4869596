//! Tests: what a server refuses, and what its clients are told when one of them is gone. Wrong messages are made by hand.

use std::thread;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::element::{Table, Tables};
use super::frame::{Frame, Header, MAX_FRAME_BYTES, Verb};
use super::{Client, Options, Preset, ServerOptions, TabletServer, Worker};
use crate::Error;

/// A table with rows of two f32.
fn tables() -> (Tables, Table<f32>) {
    let mut tables = Tables::new();
    let table = tables.add(2);
    (tables, table)
}

fn server(clients: usize, patience: Duration) -> TabletServer {
    TabletServer::start("127.0.0.1:0", &tables().0, ServerOptions { patience, ..ServerOptions::new(0, 1, clients) })
        .unwrap()
}

fn options(client: usize, clients: usize) -> Options {
    Options { client, clients, ..Options::preset(Preset::LazyTable, 1, 0) }
}

/// Ends a clock and reads; returns what the worker is told, be it by the one or the other.
fn end(worker: &mut Worker, table: Table<f32>) -> Error {
    worker.clock().and_then(|()| worker.read(table, 0, 0).map(drop)).unwrap_err()
}

/// A connection that says what a test wants.
struct Forger {
    runtime: Runtime,
    stream: TcpStream,
}

impl Forger {
    fn connect(server: &TabletServer) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(TcpStream::connect(server.address())).unwrap();
        Self { runtime, stream }
    }

    /// Connects as client `client` of `clients`.
    fn join(server: &TabletServer, client: u32, clients: u32) -> Self {
        let mut forger = Self::connect(server);
        let hello = Frame::with_rows(Verb::Hello, 1, &[], tables().0.descriptions().as_bytes());
        forger.send(hello.set(|header| (header.clock, header.first) = (client, clients)).bytes());
        while forger.receive().unwrap().verb() != Verb::Welcome {}
        forger
    }

    fn send(&mut self, bytes: &[u8]) {
        self.runtime.block_on(self.stream.write_all(bytes)).unwrap();
    }

    fn receive(&mut self) -> Option<Frame> {
        self.runtime.block_on(Frame::read(&mut self.stream, "the server", MAX_FRAME_BYTES)).unwrap()
    }

    /// Sends what is to be refused, and returns the reason.
    fn refused(&mut self, bytes: &[u8]) -> String {
        self.send(bytes);
        loop {
            match self.receive() {
                Some(frame) if frame.verb() == Verb::Refused => return frame.text(),
                Some(_) => {}
                None => panic!("the connection was closed without a reason"),
            }
        }
    }
}

const PATIENT: Duration = Duration::from_secs(60);

#[test]
fn messages_that_cannot_be_are_refused_with_one_reason() {
    let hello = Frame::with_rows(Verb::Hello, 1, &[], b"2 f32 (sum)\n").set(|header| header.first = 1);
    let server = server(1, PATIENT);
    let changed = |word: usize, value: u32| {
        let mut bytes = hello.bytes().to_vec();
        bytes[word * 4..word * 4 + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let refused = |bytes: &[u8]| Forger::connect(&server).refused(bytes);
    assert!(refused(&changed(1, 99)).contains("version 99 of the messages and this program version 1"));
    assert!(refused(&changed(3, 1 << 30)).contains("a frame of 1073741824 bytes, and the limit is 67108864"));
    assert!(refused(&changed(2, 1000)).contains("a verb that does not exist"));
    assert!(refused(&changed(8, 1000)).contains("more rows than bytes"));
    assert!(refused(&[b'G'; 60]).contains("is not a parameter server of this program"));
    assert!(refused(Frame::new(Verb::Clock).bytes()).contains("a client begins with who it is"));
    assert!(refused(&changed(7, 5)).contains("client 0 of 5 came to a server for 1 clients"));
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let row = [0u8; 8];
    let with = |table, rows: &[u32], data: &[u8]| Frame::with_rows(Verb::Update, table, rows, data);
    let frames: [(Frame, &str); 6] = [
        (with(3, &[0], &row), "there is no table 3: tables are 0..1"),
        (Frame::with_rows(Verb::Read, 1, &[0], &[]), "there is no table 1"),
        (with(0, &[0, 1], &row), "table 0 has rows of 2 f32 (sum), not of 8 bytes for 2 rows"),
        (Frame::new(Verb::PlanUpdate).set(|header: &mut Header| header.first = 1), "rows beyond the 0 of a list"),
        (Frame::new(Verb::Clock).set(|header| header.clock = 7), "ended clock 7 while in clock 0"),
        (Frame::new(Verb::Welcome), "a client does not send Welcome"),
    ];
    for (frame, reason) in frames {
        let server = server(1, PATIENT);
        let found = Forger::join(&server, 0, 1).refused(frame.bytes());
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn a_client_that_has_left_has_no_clocks_and_updates() {
    let row = [0u8; 8];
    for frame in [Frame::with_rows(Verb::Update, 0, &[0], &row), Frame::new(Verb::Clock).set(|h| h.clock = u32::MAX)] {
        let server = server(2, PATIENT);
        let mut forger = Forger::join(&server, 0, 2);
        forger.send(Frame::new(Verb::Leave).bytes());
        assert!(forger.refused(frame.bytes()).contains("client 0 has left"));
    }
}

#[test]
fn clients_with_other_tables_or_numbers_are_refused() {
    let server = server(2, PATIENT);
    let connect =
        |tables: &Tables, client, clients| Client::connect(&[server.address()], tables, options(client, clients));
    let refused = |tables: &Tables, client, clients| match connect(tables, client, clients) {
        Err(Error::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let mut longer = Tables::new();
    longer.add::<f32>(3);
    assert!(refused(&longer, 0, 2).contains("table 0 has rows of 2 f32 (sum), not of 3 f32 (sum)"));
    let mut integers = Tables::new();
    integers.add::<i32>(2);
    assert!(refused(&integers, 0, 2).contains("not of 2 i32 (sum)"));
    let mut more = tables().0;
    more.add::<f32>(1);
    assert!(refused(&more, 0, 2).contains("there is no table 1"));
    assert!(refused(&Tables::new(), 0, 2).contains("there is no table 0"));
    assert!(refused(&tables().0, 0, 3).contains("came to a server for 2 clients"));
    let _first = connect(&tables().0, 0, 2).unwrap();
    assert!(refused(&tables().0, 0, 2).contains("client 0 is there already"));
}

/// Starts a client that reads what the other client is late for, has the other one vanish, and returns what it is told.
fn told(server: &TabletServer, vanish: impl FnOnce(Forger)) -> Error {
    let (tables, table) = tables();
    let client = Client::connect(&[server.address()], &tables, options(0, 2)).unwrap();
    let mut other = Forger::join(server, 1, 2);
    other.send(Frame::with_rows(Verb::Update, 0, &[0], &[0; 8]).bytes());
    thread::scope(|scope| {
        let mut worker = client.worker(0).unwrap();
        let reader = scope.spawn(move || {
            worker.update(table, 0, &[1.0, 1.0]).unwrap();
            end(&mut worker, table)
        });
        vanish(other);
        reader.join().unwrap()
    })
}

#[test]
fn peers_are_told_of_a_client_that_vanishes_in_a_clock() {
    let error = told(&server(2, PATIENT), drop);
    assert!(matches!(error, Error::ClientLost { client: 1, clock: 0 }), "{error}");
}

#[test]
fn peers_are_told_of_a_client_that_is_silent() {
    let server = server(2, Duration::from_millis(1500));
    let mut silent = None;
    let error = told(&server, |other| silent = Some(other));
    assert!(matches!(error, Error::ClientLost { client: 1, clock: 0 }), "{error}");
}

#[test]
fn a_client_that_was_lost_is_refused_and_so_is_a_new_one() {
    let (server, (tables, _)) = (server(2, PATIENT), tables());
    drop(Forger::join(&server, 1, 2));
    // The server may notice after the next one came; then that one is told.
    let mut next = Forger::join(&server, 0, 2);
    while next.receive().unwrap().verb() != Verb::Lost {}
    let error = Client::connect(&[server.address()], &tables, options(1, 2)).unwrap_err();
    assert!(error.to_string().contains("client 1 was lost; restart all processes"), "{error}");
}

#[test]
fn a_thread_that_panics_ends_the_run_of_all() {
    let server = server(2, PATIENT);
    let (tables, table) = tables();
    let connect = |client| Client::connect(&[server.address()], &tables, options(client, 2)).unwrap();
    let (first, second) = (connect(0), connect(1));
    let mut waiting = first.worker(0).unwrap();
    thread::scope(|scope| {
        let panicking = scope.spawn(|| {
            let _worker = second.worker(0).unwrap();
            panic!("as a test wants it");
        });
        assert!(panicking.join().is_err());
    });
    let own = second.barrier().unwrap_err();
    assert!(matches!(own, Error::ThreadPanicked { thread: 0, clock: 0 }), "{own}");
    drop(second);
    let error = end(&mut waiting, table);
    assert!(matches!(error, Error::ClientLost { client: 1, .. }), "{error}");
}

#[test]
fn clients_are_told_of_a_server_that_is_gone() {
    let server = server(2, PATIENT);
    let (tables, table) = tables();
    let client = Client::connect(&[server.address()], &tables, options(0, 2)).unwrap();
    let mut worker = client.worker(0).unwrap();
    drop(server);
    let error = end(&mut worker, table);
    assert!(matches!(error, Error::ServerLost { server: 0, .. }), "{error}");
}

#[test]
fn a_client_does_not_take_another_version_for_a_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut welcome = Frame::new(Verb::Welcome).bytes().to_vec();
        welcome[4] = 200;
        stream.write_all(&welcome).unwrap();
        // Until the client closes.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let error = Client::connect(&[address], &tables().0, options(0, 1)).unwrap_err();
    assert!(error.to_string().contains("speaks version 200 of the messages and this program version 1;"), "{error}");
    server.join().unwrap();
}

/// Frames survive the way through a stream.
#[test]
fn frames_are_read_as_they_were_written() {
    let runtime = Builder::new_current_thread().build().unwrap();
    for (rows, data) in [(&[][..], &[][..]), (&[7, 8, 9][..], &[1, 2, 3, 4, 5][..]), (&[1][..], &[9; 8][..])] {
        let sent = Frame::with_rows(Verb::Rows, 3, rows, data).set(|header| header.version = 5);
        let mut bytes = sent.bytes();
        let frame = runtime.block_on(Frame::read(&mut bytes, "a test", MAX_FRAME_BYTES)).unwrap().unwrap();
        assert_eq!((frame.verb(), frame.rows(), frame.data()), (Verb::Rows, rows, data));
        assert_eq!((frame.header().table, frame.header().version), (3, 5));
    }
}
