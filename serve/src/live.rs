//! A run that can be watched while it runs: events, as they come, for any number of browsers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, Response};
use axum::routing::get;
use futures_util::stream::{Stream, unfold};
use megagrid_partition::parallel::lock;
use megagrid_training::page;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::Error;
use crate::connections;
use crate::hosts::Hosts;
use crate::http::POLICY;
use crate::server::refused;

/// The page, which shows events as curves.
const PAGE: &str = include_str!("live.html");
/// The event after which there is no other.
const END: &str = "end";
/// How long watchers may take to hear of the end.
const GRACE: Duration = Duration::from_secs(3);

/// A page at an address of this machine that shows a run. It ends with this.
#[derive(Debug)]
pub struct Live {
    address: SocketAddr,
    told: Arc<Told>,
    /// What answers, what ends it, and where it runs.
    serving: Option<(JoinHandle<usize>, oneshot::Sender<()>, Runtime)>,
}

/// Events that are kept for those who come late: some 10 MB.
const MOST: usize = 10_000;

/// What was told: the first event, which says what the run is, and the last ones.
#[derive(Debug)]
struct Told {
    /// Tells the events of this run from those of another at the same address: a random number.
    run: u64,
    events: Mutex<Events>,
    /// How many events there have been.
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Events {
    first: Option<(&'static str, String)>,
    /// Later ones, with their numbers, which the first has 0 of.
    last: VecDeque<(usize, &'static str, String)>,
    count: usize,
}

impl Live {
    /// Begins to listen; port 0 takes a free one. A thread of its own answers.
    ///
    /// # Errors
    /// An address that others can reach, or that cannot be listened at.
    pub fn start(address: SocketAddr) -> Result<Self, Error> {
        if !address.ip().is_loopback() {
            let expected = "expected one of this machine, such as 127.0.0.1, to which ssh -L leads from elsewhere";
            return Err(Error::Option(format!("{} can be reached by others; {expected}", address.ip())));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener =
            runtime.block_on(TcpListener::bind(address)).map_err(|source| Error::Bind { address, source })?;
        let address = listener.local_addr()?;
        let told = Arc::new(Told::new());
        let router = router(Arc::clone(&told));
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap_or_default() };
        let answering = runtime.spawn(connections::serve(listener, router, stopped, GRACE));
        Ok(Self { address, told, serving: Some((answering, stop, runtime)) })
    }

    /// Returns where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells all who watch, now and later.
    pub fn tell(&self, event: &'static str, about: &impl Serialize) {
        // What is told has names, numbers and lists, all of which JSON can hold.
        let text = serde_json::to_string(about).unwrap_or_default();
        let mut events = self.told.events();
        let number = events.count;
        if number == 0 {
            events.first = Some((event, text));
        } else {
            events.last.push_back((number, event, text));
        }
        if events.last.len() > MOST {
            events.last.pop_front();
        }
        events.count += 1;
        self.told.count.send_replace(events.count);
    }
}

impl Drop for Live {
    /// Tells of the end, and gives those who watch a moment to hear of it.
    fn drop(&mut self) {
        self.tell(END, &());
        if let Some((answering, stop, runtime)) = self.serving.take() {
            // Connections end when all was sent; who does not read is not waited for.
            let _ = stop.send(());
            let _ = runtime.block_on(answering);
            runtime.shutdown_background();
        }
    }
}

impl Told {
    fn new() -> Self {
        // Whatever is hashed: the keys of a hasher are random.
        let run = RandomState::new().hash_one(0_u8);
        Self { run, events: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// Returns what a browser is to call an event by its number.
    fn id(&self, number: usize) -> String {
        format!("{:x}-{number}", self.run)
    }

    /// Returns the number of the event to send first to a browser that says which it had last. One that watched another run, or says
    /// what has not been, begins at the beginning.
    fn after(&self, last: Option<&str>) -> usize {
        let number = || {
            let (run, number) = last?.split_once('-')?;
            let number = number.parse::<usize>().ok()?;
            let is_ours = u64::from_str_radix(run, 16) == Ok(self.run) && number < *self.count.borrow();
            is_ours.then_some(number + 1)
        };
        number().unwrap_or(0)
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        lock(&self.events)
    }

    /// Returns the event of a number, or the first after it that is kept.
    fn event(&self, number: usize) -> Option<(usize, &'static str, String)> {
        let Events { first, last, .. } = &*self.events();
        match (number, first) {
            (0, Some((event, text))) => Some((0, event, text.clone())),
            _ => last.get(number.saturating_sub(last.front()?.0)).cloned(),
        }
    }
}

fn router(told: Arc<Told>) -> Router {
    let html = page::filled(PAGE);
    Router::new()
        .route("/", get(|| async { ([(CONTENT_SECURITY_POLICY, POLICY)], Html(html)) }))
        .route("/run", get(events))
        .with_state(told)
        .layer(from_fn(guard))
}

/// Lets in who calls this machine by a name that it has: a name of another site can lead to it. Pages of other origins that call it so
/// cannot read the answer.
async fn guard(request: Request, next: Next) -> Response {
    let mut headers = request.headers().clone();
    headers.remove(ORIGIN);
    match Hosts::default().problem(&headers) {
        Some(problem) => refused(StatusCode::FORBIDDEN, problem),
        None => next.run(request).await,
    }
}

/// Sends all events from the beginning, or after the last that a browser says it has.
async fn events(
    State(told): State<Arc<Told>>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let begin = (told.after(last), told.count.subscribe());
    let next = move |(number, mut count): (usize, watch::Receiver<usize>)| {
        let told = Arc::clone(&told);
        async move {
            // After the last event nothing is said, and the connection is closed.
            if number > 0 && told.event(number - 1).is_some_and(|(_, name, _)| name == END) {
                return None;
            }
            count.wait_for(|&count| count > number).await.ok()?;
            let (number, name, text) = told.event(number)?;
            Some((Ok(Event::default().id(told.id(number)).event(name).data(text)), (number + 1, count)))
        }
    };
    Sse::new(unfold(begin, next)).keep_alive(KeepAlive::default())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// Asks for the events of a run, until its last; returns all that is said.
    fn watch(address: SocketAddr, last: Option<&str>) -> String {
        ask(address, "localhost", last)
    }

    fn ask(address: SocketAddr, host: &str, last: Option<&str>) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        write!(stream, "GET /run HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{last}\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    fn ids(said: &str) -> Vec<&str> {
        said.lines().filter_map(|line| line.strip_prefix("id: ")).collect()
    }

    fn start() -> Live {
        Live::start(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
    }

    #[test]
    fn who_comes_back_gets_what_is_missing_and_of_another_run_everything() {
        let live = start();
        live.tell("begin", &());
        live.tell("iteration", &1);
        live.tell("iteration", &2);
        live.tell(END, &());
        let all = watch(live.address(), None);
        let all = ids(&all);
        assert_eq!(all.len(), 4, "{all:?}");
        let missing = watch(live.address(), Some(all[1]));
        assert_eq!(ids(&missing), all[2..]);
        let stranger = ask(live.address(), "example.org", None);
        assert!(stranger.starts_with("HTTP/1.1 403") && !stranger.contains("event:"), "{stranger}");
        // A run that has told less than the one before, as a browser that goes on after that may find it.
        let other = start();
        other.tell("begin", &());
        other.tell(END, &());
        let beyond = format!("{:x}-7", other.told.run);
        for last in [all[0], all[3], "3", "", "x-1", "-", beyond.as_str()] {
            let said = watch(other.address(), Some(last));
            let events: Vec<_> = said.lines().filter(|line| line.starts_with("event: ")).collect();
            assert_eq!(events, ["event: begin", "event: end"], "{last}");
        }
    }
}
