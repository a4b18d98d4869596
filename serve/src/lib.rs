//! Trained models that answer over HTTP, in JSON.
//!
//! [`serve`] reads model directories, as `--model` writes them, into memory, and answers questions until it is told to stop:
//!
//! | model of | question | asks for |
//! |---|---|---|
//! | `mf`, `als` | `recommend` | the best items of users, or of people by what they rated |
//! | | `similar` | items or users that are alike |
//! | | `predict` | ratings of pairs of a user and an item |
//! | | `find` | names with a text in them |
//! | `blockpg` | `predict` | the chance that samples are of the second class; of more than two the class, and the chance of each |
//! | `lda` | `topics`, `words`, `map` | the topics of texts; the words of topics; what the page shows of them |
//! | `pagerank`, `hits` | `top`, `rank` | the best vertices; the places of some |
//!
//! A training that is under way is followed: the model of each checkpoint takes the place of the one before, and one that is older than it
//! may be is said to be stale, in answers, on the page and at `GET /fresh`.
//!
//! A model is swapped whole when its directory changes, or at `POST /reload`: questions go to the one before until the new one is in
//! memory, and none fails or waits. A request touches no file, but for a reload.
#![forbid(unsafe_code)]

mod connections;
mod error;
mod factors;
mod gate;
mod hosts;
mod http;
mod linear;
mod live;
mod metrics;
mod models;
mod questions;
mod ranks;
mod server;
mod topics;

pub use error::{Error, Refusal};
pub use live::Live;
pub use models::{Loaded, Served};
pub use questions::{Answer, Answers, MOST, Placed, Scored, Share};
pub use tokio::time::sleep;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use megagrid_training::checkpoint::model_of;
use megagrid_training::model::{manifest_path, name};
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;

use hosts::Hosts;
use http::router;
use server::{Reloads, Server};

/// How models are served.
#[derive(Clone, Debug)]
pub struct Options {
    /// Their directories.
    pub models: Vec<PathBuf>,
    /// Directories of checkpoints of trainings, whose models are followed.
    pub trainings: Vec<PathBuf>,
    /// How old a model may be.
    pub max_age: Option<Duration>,
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// What whoever asks has to know, as a bearer token. Other addresses than those of this machine need one.
    pub token: Option<String>,
    /// Names beside those of this machine that requests may call a server by that has no token.
    pub hosts: Vec<String>,
    /// Threads that answer.
    pub threads: usize,
    /// Questions that are answered, or wait for a thread, at a time; others are told to ask again.
    pub concurrency: usize,
    /// Bytes that the body of a request may have.
    pub body_limit: usize,
    /// How long a request may take.
    pub time_limit: Duration,
    /// How often it is looked whether a directory has changed; `None`: never.
    pub watch_every: Option<Duration>,
}

/// Connections that may wait to be taken.
const BACKLOG: u32 = 1024;
/// How long requests may at least go on when the server is told to stop. Questions always have their time.
const LEAST_GRACE: Duration = Duration::from_secs(10);

/// Serves models until `stop` is ready. `started` is told the address, and sees the models. Connections are taken from then on: where a
/// training has not come to its first model, it is waited for.
///
/// # Errors
/// A model that cannot be read, or two of one name; an address that cannot be listened at, or is not this machine's where there is no
/// token; options out of range.
pub fn serve(
    options: &Options,
    started: impl FnOnce(SocketAddr, &[Served]),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    check(options)?;
    let (names, hosts) = (names(options)?, Hosts::new(options.hosts.clone())?);
    // Before there may be a wait.
    let socket = bound(options.address)?;
    let models = read(options, names)?;
    let server = Arc::new(Server {
        models,
        metrics: metrics::Metrics::default(),
        permits: Arc::new(Semaphore::new(options.concurrency)),
        threads: Arc::new(Semaphore::new(options.threads)),
        reloads: Reloads::default(),
        token: options.token.clone(),
        hosts,
        time_limit: options.time_limit,
        body_limit: options.body_limit,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads)
        // Beside those that answer one looks for changed models, and one reads them again when that is asked for.
        .max_blocking_threads(options.threads + 2)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(run(options, (server, socket), started, stop));
    // A question that is being answered ends with the program.
    runtime.shutdown_background();
    ended
}

/// Returns what models are called, in their order: those of directories, and those of trainings.
fn names(options: &Options) -> Result<Vec<String>, Error> {
    let names: Vec<_> = options.models.iter().chain(&options.trainings).map(|directory| name(directory)).collect();
    let mut known = HashSet::new();
    match names.iter().find(|name| !known.insert(*name)) {
        Some(twice) => Err(Error::Option(format!("two models are called \"{twice}\"; rename the directory of one"))),
        None => Ok(names),
    }
}

/// Takes an address, without listening yet: until models are there, connections are refused, and not left to wait.
fn bound(address: SocketAddr) -> Result<TcpSocket, Error> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    let mut bound = socket.bind(address);
    // Connections of a server that was there before may be ending. Who shares the address before it listens may lose it to another, so this is
    // the second try. Elsewhere it means another thing.
    #[cfg(unix)]
    if bound.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse) {
        socket.set_reuseaddr(true)?;
        bound = socket.bind(address);
    }
    bound.map_err(|source| Error::Bind { address, source })?;
    Ok(socket)
}

/// Reads all models, those of trainings last, as there may be a wait.
fn read(options: &Options, names: Vec<String>) -> Result<Vec<Served>, Error> {
    let whole = options.models.iter().map(|directory| Ok(directory.clone()));
    // Where trainings are followed, it has been checked that there is a time between looks.
    let every = options.watch_every.unwrap_or_default();
    let followed = options.trainings.iter().map(|directory| first_model(directory, every));
    let read = |(directory, name): (Result<_, Error>, _)| Served::read(name, directory?, options.max_age);
    whole.chain(followed).zip(names).map(read).collect()
}

/// Returns where a training writes its model, once there is one.
fn first_model(training: &Path, every: Duration) -> Result<PathBuf, Error> {
    let model = model_of(training);
    let manifest = manifest_path(&model);
    let mut is_said = false;
    while !manifest.try_exists().map_err(megagrid_training::Error::io(&manifest))? {
        if !std::mem::replace(&mut is_said, true) {
            tracing::warn!(
                "{}: waiting for the first model; one that trains without --checkpoint-model goes on with --resume and \
                 --checkpoint-model, and geeps and tune write none",
                training.display()
            );
        }
        std::thread::sleep(every);
    }
    Ok(model)
}

fn check(options: &Options) -> Result<(), Error> {
    let problem = if options.models.is_empty() && options.trainings.is_empty() {
        "there is no model to serve".to_owned()
    } else if !options.trainings.is_empty() && options.watch_every.is_none() {
        "a training is followed by looking now and then; --watch-every has to be above 0".to_owned()
    } else if !options.address.ip().is_loopback() && options.token.is_none() {
        format!("{} can be reached by others, so a token is needed: --token-file FILE", options.address.ip())
    } else if options.token.as_ref().is_some_and(|token| token.is_empty()) {
        "the token is empty; expected a text that is hard to guess".to_owned()
    } else if options.threads == 0
        || options.concurrency == 0
        || options.body_limit == 0
        || options.time_limit.is_zero()
    {
        "threads, questions at a time, bytes and time have to be above 0".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::Option(problem))
}

async fn run(
    options: &Options,
    (server, socket): (Arc<Server>, TcpSocket),
    started: impl FnOnce(SocketAddr, &[Served]),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    // The connections that are taken have it from here: the next server shares the address with those that are ending.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    let listener = socket.listen(BACKLOG).map_err(|source| Error::Bind { address: options.address, source })?;
    started(listener.local_addr()?, &server.models);
    let watching = options.watch_every.map(|every| tokio::spawn(watch(Arc::clone(&server), every)));
    let grace = options.time_limit.max(LEAST_GRACE);
    let cut_off = connections::serve(listener, router(server), stop, grace).await;
    if cut_off > 0 {
        tracing::warn!("requests that were not done in {} s are cut off: {cut_off}", grace.as_secs_f64());
    }
    watching.into_iter().for_each(|task| task.abort());
    Ok(())
}

/// Looks now and then whether directories have changed, and reads those that have.
async fn watch(server: Arc<Server>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let server = Arc::clone(&server);
        let looking = tokio::task::spawn_blocking(move || {
            for served in &server.models {
                match served.reload_if_changed() {
                    Some((Ok(loaded), _)) => tracing::info!("{}: version {} is served", served.name, loaded.version),
                    Some((Err(error), is_news)) => {
                        server.metrics.reload_failed(&served.name);
                        if is_news {
                            tracing::warn!("{} goes on as it was: {error}", served.name);
                        }
                    }
                    None => {}
                }
            }
        });
        if looking.await.is_err() {
            tracing::warn!("looking for changed models failed; going on");
        }
    }
}
