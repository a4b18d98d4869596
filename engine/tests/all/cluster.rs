//! Several processes, as threads of one: how they come together, what they do together, and how they part.

use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;

use megagrid_engine::cluster::{Cluster, ClusterError, FreePorts, Membership, Secret};

/// Long enough for any machine that still works.
const LONG: Duration = Duration::from_secs(30);
/// So short that a test may wait for it.
const SHORT: Duration = Duration::from_millis(600);

/// Returns addresses of this machine at which nobody listens, kept until the tests end.
fn addresses(count: usize) -> Vec<String> {
    let ports = ManuallyDrop::new(FreePorts::find(count).unwrap());
    ports.addresses().to_vec()
}

fn join(process: usize, addresses: &[String], patience: Duration) -> Result<Arc<Cluster>, ClusterError> {
    join_with("", process, addresses, patience)
}

fn join_with(
    secret: &str,
    process: usize,
    addresses: &[String],
    patience: Duration,
) -> Result<Arc<Cluster>, ClusterError> {
    let (addresses, secret) = (addresses.to_vec(), Secret::new(secret));
    Cluster::join(&Membership { process, addresses, secret }, patience)
}

/// Lets a process join on a thread of its own, which returns why it could not.
fn refused(process: usize, addresses: &[String]) -> JoinHandle<String> {
    let addresses = addresses.to_vec();
    std::thread::spawn(move || join(process, &addresses, LONG).unwrap_err().to_string())
}

/// A job's first process that says `words` to the one that comes: the job's addresses.
fn stranger(words: Vec<u8>) -> ([String; 2], JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let list = [listener.local_addr().unwrap().to_string(), addresses(1).remove(0)];
    let thread = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.write_all(&words).unwrap();
        stream
    });
    (list, thread)
}

fn run<R: Send>(count: usize, process: impl Fn(Arc<Cluster>) -> R + Sync) -> Vec<R> {
    let addresses = addresses(count);
    let (addresses, process, all_there) = (&addresses[..], &process, &Barrier::new(count));
    std::thread::scope(|scope| {
        let start = |number| {
            scope.spawn(move || {
                let cluster = join(number, addresses, LONG).unwrap();
                // All have joined before one does something about it.
                all_there.wait();
                process(cluster)
            })
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns what the handler of a process is told.
fn told(cluster: &Cluster) -> Receiver<String> {
    let (sender, receiver) = channel();
    cluster.on_loss(move |reason| sender.send(reason.to_owned()).unwrap());
    receiver
}

#[test]
fn collectives_keep_the_order_of_processes() {
    for count in [2, 5] {
        run(count, |cluster| {
            let own = cluster.process();
            assert_eq!(cluster.processes(), count);
            let part = |process: usize| vec![process as u8; process];
            let all: Vec<_> = (0..count).map(part).collect();
            for _ in 0..3 {
                assert_eq!(cluster.all_gather(part(own)).unwrap(), all);
                assert_eq!(cluster.gather(part(own)).unwrap(), (own == 0).then(|| all.clone()));
                assert_eq!(cluster.broadcast(vec![own as u8; 7]).unwrap(), [0; 7]);
            }
            cluster.leave();
        });
    }
}

#[test]
fn large_parts_arrive_whole() {
    const BYTES: usize = 20 << 20;
    run(3, |cluster| {
        let part = |process: usize| (0..BYTES + process).map(|at| (at * (process + 3)) as u8).collect::<Vec<_>>();
        let all = cluster.all_gather(part(cluster.process())).unwrap();
        assert!(all.iter().enumerate().all(|(process, bytes)| *bytes == part(process)));
        cluster.leave();
    });
}

#[test]
fn the_first_fact_that_differs_is_named() {
    let messages = run(3, |cluster| {
        let is_last = cluster.process() == 2;
        let seed = if is_last { "7" } else { "1" };
        let same = |name| (name, "x".to_owned());
        cluster.agree(&[same("data")]).unwrap();
        let different = cluster.agree(&[same("data"), ("seed", seed.to_owned())]).unwrap_err();
        let facts = if is_last { vec![same("inject"), same("data")] } else { vec![same("data")] };
        let missing = cluster.agree(&facts).unwrap_err();
        // The processes are still together.
        cluster.agree(&[same("data")]).unwrap();
        cluster.leave();
        [different, missing].map(|error| error.to_string())
    });
    for [different, missing] in messages {
        assert!(different.starts_with("process 2 has seed 7, process 0 has seed 1; start all"), "{different}");
        assert!(missing.starts_with("process 2 has inject x, process 0 has inject unset; start all"), "{missing}");
    }
}

#[test]
fn each_run_gets_fresh_sockets() {
    run(4, |cluster| {
        let own = cluster.process();
        for run in 0..3_u8 {
            let sockets = cluster.sockets().unwrap();
            assert_eq!(sockets.len(), 4);
            for (peer, socket) in sockets.iter().enumerate() {
                assert_eq!(socket.is_none(), peer == own);
                if let Some(mut socket) = socket.as_ref() {
                    socket.write_all(&[own as u8, run]).unwrap();
                }
            }
            for (peer, mut socket) in sockets.iter().enumerate().filter_map(|(peer, one)| Some((peer, one.as_ref()?))) {
                let mut got = [0; 2];
                socket.read_exact(&mut got).unwrap();
                assert_eq!(got, [peer as u8, run]);
            }
        }
        cluster.leave();
    });
}

#[test]
fn a_loss_is_told_once_by_all_who_are_left() {
    for lost in [0, 2] {
        let barrier = Barrier::new(4);
        let messages = run(4, |cluster| {
            if cluster.process() == lost {
                barrier.wait();
                drop(cluster);
                return None;
            }
            let told = told(&cluster);
            barrier.wait();
            // Waits for a part that will never come.
            let error = cluster.all_gather(vec![1]).unwrap_err().to_string();
            let message = told.recv_timeout(LONG).unwrap();
            assert_eq!(error, message);
            assert_eq!(cluster.sockets().unwrap_err().to_string(), message);
            assert_eq!(cluster.reason(Duration::ZERO), Some(message.clone()));
            assert!(told.recv_timeout(SHORT).is_err(), "told twice");
            Some(message)
        });
        assert_eq!(messages.iter().flatten().count(), 3);
        for message in messages.into_iter().flatten() {
            assert!(message.starts_with(&format!("process {lost} (127.0.0.1:")), "{message}");
            assert!(message.ends_with("is lost: connection closed"), "{message}");
        }
    }
}

#[test]
fn a_failure_is_the_reason_for_all_others() {
    for failing in [0, 1] {
        let messages = run(3, |cluster| {
            let told = told(&cluster);
            if cluster.process() == failing {
                cluster.fail("out of luck");
                assert!(cluster.all_gather(vec![]).is_err());
                assert!(told.try_recv().is_err(), "the process that fails knows");
                return None;
            }
            Some(told.recv_timeout(LONG).unwrap())
        });
        for message in messages.into_iter().flatten() {
            assert!(message.starts_with(&format!("process {failing} (")), "{message}");
            assert!(message.ends_with("stopped: out of luck"), "{message}");
        }
    }
}

#[test]
fn leaving_is_no_loss() {
    let losses = AtomicUsize::new(0);
    let losses = &losses;
    std::thread::scope(|scope| {
        let addresses = addresses(3);
        for process in 0..3 {
            let addresses = addresses.clone();
            scope.spawn(move || {
                let cluster = join(process, &addresses, LONG).unwrap();
                let told = told(&cluster);
                if process == 1 {
                    // The others leave meanwhile.
                    std::thread::sleep(SHORT);
                }
                cluster.leave();
                drop(cluster);
                losses.fetch_add(told.try_iter().count(), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(losses.load(Ordering::Relaxed), 0);
}

#[test]
fn who_waits_for_one_that_left_is_told() {
    run(3, |cluster| {
        if cluster.process() == 1 {
            return cluster.leave();
        }
        let message = cluster.all_gather(vec![]).unwrap_err().to_string();
        let expected = if cluster.process() == 0 { "process 1" } else { "process 0" };
        assert!(message.starts_with(expected), "{message}");
        cluster.fail(&message);
    });
}

#[test]
fn nobody_there_ends_with_patience() {
    let addresses = addresses(3);
    let hub = join(0, &addresses, SHORT).unwrap_err().to_string();
    for part in ["process 1 (127.0.0.1:", "and process 2 (127.0.0.1:", "did not connect", "within 0.6 s"] {
        assert!(hub.contains(part), "{hub}");
    }
    let other = join(1, &addresses, SHORT).unwrap_err();
    assert!(matches!(other, ClusterError::Unreachable { process: 0, from: 1, .. }), "{other}");
    assert!(other.to_string().contains("nobody listens there"), "{other}");
}

#[test]
fn one_that_waits_hears_who_is_missing() {
    let addresses = addresses(3);
    let other = refused(2, &addresses);
    let hub = join(0, &addresses, SHORT * 2).unwrap_err().to_string();
    assert!(hub.starts_with("process 1 (") && !hub.contains("process 2"), "{hub}");
    assert_eq!(other.join().unwrap(), hub);
}

#[test]
fn a_process_started_twice_is_named() {
    // With the same address: the port is taken.
    let (of_first, barrier) = (addresses(2), Barrier::new(3));
    std::thread::scope(|scope| {
        for process in 0..2 {
            let (addresses, barrier) = (&of_first, &barrier);
            scope.spawn(move || {
                let cluster = join(process, addresses, LONG).unwrap();
                barrier.wait();
                barrier.wait();
                // The second one was no harm.
                assert_eq!(cluster.broadcast(vec![5]).unwrap().len(), 1);
                cluster.leave();
            });
        }
        barrier.wait();
        for process in 0..2 {
            let error = join(process, &of_first, SHORT).unwrap_err().to_string();
            assert!(error.contains(&format!("process {process} of this job is running there already")), "{error}");
        }
        barrier.wait();
    });
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let list = vec![taken.local_addr().unwrap().to_string(), "127.0.0.1:7".to_owned()];
    let error = join(0, &list, SHORT).unwrap_err().to_string();
    assert!(error.contains("the port is taken by another program") && error.contains("MEGAGRID_PORT_BASE"), "{error}");
}

#[test]
fn lists_that_differ_are_refused_everywhere() {
    let ours = addresses(3);
    let mut theirs = ours.clone();
    theirs[2] = addresses(1).remove(0);
    let [longer, other] = [[&ours[..], &addresses(1)[..]].concat(), theirs];
    for (list, part) in [(longer, "was told of 4 processes, process 0 of 3"), (other, "was told that process 2 is")] {
        let hub = refused(0, &ours);
        let error = join(1, &list, LONG).unwrap_err().to_string();
        assert!(error.starts_with("process 1 (127.0.0.1) ") && error.contains(part), "{error}");
        assert_eq!(hub.join().unwrap(), error);
    }
}

#[test]
fn who_comes_after_the_end_is_told_why() {
    let ours = addresses(3);
    let mut theirs = ours.clone();
    theirs[2] = addresses(1).remove(0);
    let hub = refused(0, &ours);
    let error = join(1, &theirs, LONG).unwrap_err().to_string();
    assert!(error.contains("was told that process 2 is"), "{error}");
    assert_eq!(join(2, &ours, LONG).unwrap_err().to_string(), error);
    assert_eq!(hub.join().unwrap(), error);
}

#[test]
fn other_protocols_are_refused() {
    let ours = addresses(2);
    let hub = refused(0, &ours);
    let protocol_9 = [b"MGCL", &9_u32.to_le_bytes()[..], &[0; 8]].concat();
    let mut stream = connect(&ours[0]);
    stream.write_all(&protocol_9).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer[..4], *b"MGCL");
    let error = hub.join().unwrap();
    assert!(error.contains("another version of megagrid (protocol 9"), "{error}");

    // And the other way round.
    let (list, hub) = stranger(protocol_9);
    let error = join(1, &list, LONG).unwrap_err();
    assert!(matches!(error, ClusterError::Protocol { process: 0, found: 9, .. }), "{error}");
    drop(hub.join().unwrap());
}

#[test]
fn who_does_not_know_the_secret_is_turned_away() {
    let ours = addresses(2);
    let hub = std::thread::spawn({
        let ours = ours.clone();
        move || join_with("xyzzy", 0, &ours, LONG).unwrap_err().to_string()
    });
    let error = join_with("plugh", 1, &ours, LONG).unwrap_err();
    assert!(matches!(error, ClusterError::Secret { process: 0, from: 1, .. }), "{error}");
    let reason = hub.join().unwrap();
    assert!(
        reason.starts_with("a process at 127.0.0.1 and process 0 do not have the same secret; give all"),
        "{reason}"
    );

    // A job that has begun goes on, and its sockets need the secret too.
    let ours = addresses(2);
    let barrier = Barrier::new(3);
    std::thread::scope(|scope| {
        for process in 0..2 {
            let (ours, barrier) = (&ours, &barrier);
            scope.spawn(move || {
                let cluster = join_with("xyzzy", process, ours, LONG).unwrap();
                barrier.wait();
                barrier.wait();
                assert_eq!(cluster.sockets().unwrap().iter().flatten().count(), 1);
                cluster.leave();
            });
        }
        barrier.wait();
        assert!(matches!(join(1, &ours, SHORT).unwrap_err(), ClusterError::Listen { .. }));
        barrier.wait();
    });
}

#[test]
fn what_is_not_megagrid_is_told_or_ignored() {
    let (list, server) = stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    let error = join(1, &list, LONG).unwrap_err();
    assert!(matches!(error, ClusterError::Foreign { process: 0, .. }), "{error}");
    drop(server.join().unwrap());

    let ours = addresses(2);
    let hub = std::thread::spawn({
        let ours = ours.clone();
        move || join(0, &ours, LONG).map(|cluster| cluster.leave())
    });
    connect(&ours[0]).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    drop(connect(&ours[0]));
    join(1, &ours, LONG).unwrap().leave();
    hub.join().unwrap().unwrap();
}

#[test]
fn bad_lists_are_refused_at_once() {
    let refused = |process, list: &[&str]| {
        let list: Vec<_> = list.iter().map(|&one| one.to_owned()).collect();
        join(process, &list, LONG).unwrap_err().to_string()
    };
    assert!(refused(0, &["127.0.0.1:1"]).contains("at least 2"));
    assert!(refused(2, &["127.0.0.1:1", "127.0.0.1:2"]).contains("numbered 0 to 1"));
    assert!(refused(0, &["127.0.0.1", "127.0.0.1:2"]).contains("no port"));
    assert!(refused(0, &["192.0.2.1:7100", "127.0.0.1:2"]).contains("no address of this machine"));
}

#[test]
fn names_that_do_not_resolve_are_told() {
    let port = addresses(1).remove(0);
    let list = ["no-such-host.invalid:7100".to_owned(), port];
    let error = join(0, &list, SHORT).unwrap_err();
    assert!(matches!(error, ClusterError::Unresolved { process: 0, .. }), "{error}");
    let error = join(1, &list, SHORT).unwrap_err().to_string();
    assert!(error.contains("process 0 (no-such-host.invalid:7100)") && error.contains("does not resolve"), "{error}");
}

/// Connects as soon as somebody listens.
fn connect(address: &str) -> TcpStream {
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
