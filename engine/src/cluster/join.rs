//! How processes find each other.
//!
//! Every process listens at its own address. The others connect to process 0, prove that they know the job's secret, and say hello: who
//! they are, their version, and the list of addresses that they were given. Process 0 welcomes or refuses each, and starts the job when all are
//! there. A hello that does not fit ends the job before it begins, with the same message everywhere; once it has begun it is
//! just refused. What is no hello at all, a port scanner say, is logged and ignored.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use megagrid_partition::parallel::lock;
use socket2::SockRef;

use super::ClusterError;
use super::frame::{self, FrameError, Hello, Message, PROTOCOL, Purpose};
use super::link::Link;
use super::listen;
use super::membership::Membership;
use super::secret::{self, SECRET, SECRET_FILE};
use super::shared::{DataSocket, Shared};
use super::slurm::PORT_BASE;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long a hello or its answer may take.
const ANSWER: Duration = Duration::from_secs(5);
/// How often a closing process is noticed by its listener, and a missing one looked for.
const POLL: Duration = Duration::from_millis(10);
/// Looking for a process that does not answer slows down to this.
const SLOW_POLL: Duration = Duration::from_millis(250);

/// Listens, and brings all processes together.
pub(super) fn join(shared: &Arc<Shared>, patience: Duration) -> Result<(), ClusterError> {
    let deadline = Instant::now() + patience;
    let listener = listen(shared, deadline)?;
    let own = shared.clone();
    let serving = std::thread::Builder::new().name("megagrid:accept".to_owned()).spawn(move || serve(&own, &listener));
    let serving = serving.map_err(|error| cannot_listen(shared, error.to_string()))?;
    *lock(&shared.listener) = Some(serving);
    if shared.membership.process == 0 { gather(shared, patience) } else { connect(shared, deadline, patience) }
}

/// Process 0: waits for the others, and starts the job.
fn gather(shared: &Arc<Shared>, patience: Duration) -> Result<(), ClusterError> {
    let state = shared.wait(patience, |state| state.reason.is_some() || state.links[1..].iter().all(Option::is_some));
    if let Some(reason) = &state.reason {
        return Err(ClusterError::Ended(reason.clone()));
    }
    let links: Vec<_> = state.links.iter().flatten().cloned().collect();
    let missing: Vec<_> = (1..state.links.len()).filter(|&process| state.links[process].is_none()).collect();
    drop(state);
    if !missing.is_empty() {
        let reason = missing_message(shared, &missing, patience);
        shared.end(&reason, None, false);
        return Err(ClusterError::Ended(reason));
    }
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let job = nanoseconds ^ (u64::from(std::process::id()) << 32);
    shared.started(job);
    for link in links {
        // If it is gone, the thread that reads its connection says so.
        let _ = link.send(&Message::Start { job });
    }
    Ok(())
}

fn missing_message(shared: &Shared, missing: &[usize], patience: Duration) -> String {
    let name = |&process: &usize| match resolve(&shared.membership.addresses[process]) {
        Ok(_) => shared.name(process),
        Err(error) => format!("{}, whose name does not resolve here: {error},", shared.name(process)),
    };
    let names: Vec<_> = missing.iter().map(name).collect();
    let hub = &shared.membership.addresses[0];
    format!(
        "{} did not connect to process 0 ({hub}) within {} s; was it started, and can it reach that address?",
        names.join(" and "),
        patience.as_secs_f32()
    )
}

/// The others: connect to process 0, and wait for the start.
fn connect(shared: &Arc<Shared>, deadline: Instant, patience: Duration) -> Result<(), ClusterError> {
    let mut pause = POLL;
    let stream = loop {
        let problem = match greet(shared, 0, Purpose::Control, deadline) {
            Ok(stream) => break stream,
            Err(Refusal::Final(error)) => return Err(error),
            Err(Refusal::Yet(problem)) => problem,
        };
        if Instant::now() + pause >= deadline {
            return Err(unreachable(shared, 0, patience, problem));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(SLOW_POLL);
    };
    Link::new(0, stream)
        .and_then(|link| listen::add(shared, link))
        .map_err(|error| unreachable(shared, 0, patience, error.to_string()))?;
    // Process 0 has its own patience, and its heartbeat shows that it lives.
    let state = shared.wait(Duration::MAX, |state| state.reason.is_some() || state.job.is_some());
    match &state.reason {
        Some(reason) => Err(ClusterError::Ended(reason.clone())),
        None => Ok(()),
    }
}

/// Why a process did not welcome another.
pub(super) enum Refusal {
    /// It may still come.
    Yet(String),
    /// It will not.
    Final(ClusterError),
}

/// Connects to a process and says hello, once. What follows its welcome is not read.
pub(super) fn greet(shared: &Shared, to: usize, purpose: Purpose, deadline: Instant) -> Result<TcpStream, Refusal> {
    let membership = &shared.membership;
    let address = membership.addresses[to].clone();
    let yet = |error: io::Error| Refusal::Yet(describe(&error));
    let addresses = resolve(&address).map_err(|error| Refusal::Yet(format!("its name does not resolve: {error}")))?;
    let left = deadline.saturating_duration_since(Instant::now()).clamp(POLL, ANSWER);
    let stream = connect_to_any(&addresses, left).map_err(yet)?;
    stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(left))).map_err(yet)?;
    let greeted = secret::connect(&stream, &membership.secret).and_then(|is_same| {
        if !is_same {
            return Ok(None);
        }
        frame::write(&stream, &Message::Hello(hello(membership, purpose)), &[])?;
        frame::read(&stream).map(Some)
    });
    match greeted {
        Ok(None) => Err(Refusal::Final(ClusterError::Secret { process: to, address, from: membership.process })),
        Ok(Some((Message::Welcome, 0))) => Ok(stream),
        Ok(Some((Message::Refused(reason), 0))) => Err(Refusal::Final(ClusterError::Ended(reason))),
        Err(FrameError::Protocol(found)) => {
            Err(Refusal::Final(ClusterError::Protocol { process: to, address, found, expected: PROTOCOL }))
        }
        Err(FrameError::Io(error)) => Err(yet(error)),
        Ok(Some(_)) | Err(FrameError::Foreign) => Err(Refusal::Final(ClusterError::Foreign { process: to, address })),
    }
}

fn hello(membership: &Membership, purpose: Purpose) -> Hello {
    Hello { version: VERSION.to_owned(), process: membership.process, addresses: membership.addresses.clone(), purpose }
}

fn connect_to_any(addresses: &[SocketAddr], patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(address, patience) {
            // While nobody listens at a port above 32767 of this machine, a connection may by chance meet itself.
            Ok(stream) if stream.local_addr()? == stream.peer_addr()? => last = ErrorKind::ConnectionRefused.into(),
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "nobody listens there (connection refused)".to_owned(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer".to_owned(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
            "the connection was closed without an answer".to_owned()
        }
        _ => error.to_string(),
    }
}

pub(super) fn unreachable(shared: &Shared, process: usize, patience: Duration, problem: String) -> ClusterError {
    let (address, from) = (shared.membership.addresses[process].clone(), shared.membership.process);
    ClusterError::Unreachable { process, address, from, seconds: patience.as_secs(), problem }
}

fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let found: Vec<_> = address.to_socket_addrs()?.collect();
    if found.is_empty() { Err(io::Error::new(ErrorKind::NotFound, "no address")) } else { Ok(found) }
}

/// Listens at the address of this process, as soon as its name resolves.
fn listen(shared: &Shared, deadline: Instant) -> Result<TcpListener, ClusterError> {
    let process = shared.membership.process;
    let address = &shared.membership.addresses[process];
    let addresses = loop {
        match resolve(address) {
            Ok(addresses) => break addresses,
            // Names of pods appear some time after the pods.
            Err(_) if Instant::now() + SLOW_POLL < deadline => std::thread::sleep(SLOW_POLL),
            Err(source) => return Err(ClusterError::Unresolved { process, address: address.clone(), source }),
        }
    };
    let listener = TcpListener::bind(&addresses[..]).and_then(|listener| {
        wait_shortly(&listener)?;
        Ok(listener)
    });
    listener.map_err(|error| {
        let problem = match error.kind() {
            ErrorKind::AddrInUse => who_is_there(shared),
            ErrorKind::AddrNotAvailable => {
                format!("it is no address of this machine; is {process} the right number for this process?")
            }
            _ => error.to_string(),
        };
        cannot_listen(shared, problem)
    })
}

/// Has a listener wait for connections for a little while only, by turns with looking whether the process closes.
fn wait_shortly(listener: &TcpListener) -> io::Result<()> {
    // Where the system waits, who connects is answered at once.
    if cfg!(target_os = "linux") {
        SockRef::from(listener).set_read_timeout(Some(POLL))
    } else {
        listener.set_nonblocking(true)
    }
}

fn cannot_listen(shared: &Shared, problem: String) -> ClusterError {
    let process = shared.membership.process;
    ClusterError::Listen { process, address: shared.membership.addresses[process].clone(), problem }
}

/// Asks whoever has taken the port of this process.
fn who_is_there(shared: &Shared) -> String {
    let deadline = Instant::now() + Duration::from_secs(1);
    let who = match greet(shared, shared.membership.process, Purpose::Probe, deadline) {
        Err(Refusal::Final(ClusterError::Ended(reason))) => return format!("the port is taken: {reason}"),
        Err(Refusal::Final(ClusterError::Secret { .. })) => "job",
        _ => "program",
    };
    format!("the port is taken by another {who}; choose another, with launch --port-base, under Slurm with {PORT_BASE}")
}

/// Accepts connections until the cluster closes.
fn serve(shared: &Arc<Shared>, listener: &TcpListener) {
    while !lock(&shared.state).closing {
        match listener.accept() {
            Ok((stream, from)) => {
                let own = shared.clone();
                let thread = std::thread::Builder::new().name("megagrid:greet".to_owned());
                if let Err(error) = thread.spawn(move || answer(&own, stream, from)) {
                    tracing::warn!("a connection from {from} cannot be answered: {error}");
                }
            }
            Err(error) if cfg!(target_os = "linux") && error.kind() == ErrorKind::WouldBlock => {}
            // Nobody there, or a connection that broke at once.
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// Why a connection that broke, or said too little, is ignored.
fn silent(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no hello came within {} s", ANSWER.as_secs()),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "it was closed before its hello".to_owned(),
        _ => error.to_string(),
    }
}

/// Answers a connection.
fn answer(shared: &Arc<Shared>, stream: TcpStream, from: SocketAddr) {
    let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(ANSWER)));
    let known = prepared.map_err(FrameError::Io).and_then(|()| secret::listen(&stream, &shared.membership.secret));
    let hello = known.and_then(|is_known| if is_known { frame::read(&stream).map(Some) } else { Ok(None) });
    let (wants_to_join, refusal) = match hello {
        Ok(None) => (true, Err(Some(other_secret(shared, from)))),
        Ok(Some((Message::Hello(hello), 0))) => {
            (hello.purpose == Purpose::Control, admit(shared, hello, &stream, from))
        }
        Err(FrameError::Protocol(found)) => (true, Err(Some(other_protocol(shared, from, found)))),
        Err(FrameError::Io(error)) => return tracing::warn!("a connection from {from} is ignored: {}", silent(&error)),
        _ => return tracing::warn!("a connection from {from} is ignored: it is not megagrid's"),
    };
    let Err(Some(reason)) = refusal else { return };
    let _ = frame::write(&stream, &Message::Refused(reason.clone()), &[]);
    // Closing with something unread would reset the connection, perhaps before the answer is read.
    let _ = stream.shutdown(Shutdown::Write);
    let is_joining = shared.membership.process == 0 && lock(&shared.state).job.is_none();
    if is_joining && wants_to_join {
        shared.end(&reason, None, false);
    }
    let _ = io::copy(&mut (&stream).take(frame::MAX_BYTES as u64), &mut io::sink());
}

fn other_protocol(shared: &Shared, from: SocketAddr, found: u32) -> String {
    format!(
        "a process at {} is another version of megagrid (protocol {found}, process {} has {PROTOCOL}); \
         start the same program everywhere",
        from.ip(),
        shared.membership.process,
    )
}

fn other_secret(shared: &Shared, from: SocketAddr) -> String {
    let (place, own) = (from.ip(), shared.membership.process);
    format!(
        "a process at {place} and process {own} do not have the same secret; give all processes the same \
         {SECRET_FILE} or {SECRET}"
    )
}

/// Welcomes a process. Refuses with the reason, or with nothing to say if the connection broke.
fn admit(shared: &Arc<Shared>, hello: Hello, stream: &TcpStream, from: SocketAddr) -> Result<(), Option<String>> {
    check(shared, &hello, from).map_err(Some)?;
    let broken = |_: io::Error| None;
    let kept = stream.try_clone().map_err(broken)?;
    match hello.purpose {
        Purpose::Control => {
            let link = Link::new(hello.process, kept).map_err(broken)?;
            link.send(&Message::Welcome).map_err(broken)?;
            listen::add(shared, link).map_err(broken)?;
        }
        Purpose::Data { job, run } => {
            frame::write(stream, &Message::Welcome, &[]).map_err(broken)?;
            let socket = DataSocket { job, run, from: hello.process, stream: kept };
            shared.change(|state| state.sockets.push(socket));
        }
        Purpose::Probe => {}
    }
    Ok(())
}

/// Compares a hello with what this process knows.
fn check(shared: &Shared, hello: &Hello, from: SocketAddr) -> Result<(), String> {
    let own = shared.membership.process;
    let (process, here) = (hello.process, &shared.membership.addresses);
    let place = from.ip();
    if hello.version != VERSION {
        return Err(format!(
            "process {process} ({place}) is megagrid {}, process {own} is {VERSION}; start the same program everywhere",
            hello.version
        ));
    }
    if hello.addresses.len() != here.len() {
        let (there, here) = (hello.addresses.len(), here.len());
        return Err(format!(
            "process {process} ({place}) was told of {there} processes, process {own} of {here}; give all the same list"
        ));
    }
    let different = hello.addresses.iter().zip(here).position(|(there, here)| there != here);
    if let Some(at) = different {
        let (there, here) = (&hello.addresses[at], &here[at]);
        return Err(format!(
            "process {process} ({place}) was told that process {at} is {there}, process {own} that it is {here}; \
             give all the same list"
        ));
    }
    if process >= here.len() {
        return Err(format!("a process at {place} has number {process}, and there are {}", here.len()));
    }
    if hello.purpose == Purpose::Control {
        let state = lock(&shared.state);
        if let Some(reason) = &state.reason {
            return Err(reason.clone());
        }
        if state.closing {
            return Err(format!("process {own} has ended"));
        }
    }
    match hello.purpose {
        Purpose::Probe => Err(format!("process {own} of this job is running there already; was it started twice?")),
        Purpose::Control if own != 0 => Err(format!("this is process {own}, which is not process 0")),
        Purpose::Control if process == 0 || lock(&shared.state).links[process].is_some() => {
            Err(format!("process {process} was started twice, the second time at {place}; give each its own number"))
        }
        Purpose::Data { .. } if process <= own => {
            Err(format!("process {process} is to be connected to, not to connect"))
        }
        _ => Ok(()),
    }
}
