//! `megagrid serve`: trained models that answer over HTTP.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use megagrid_engine::os;
use megagrid_serve::{Options, Served, serve};

use crate::failure::usage;
use crate::{interrupt, output};

/// Answers questions to trained models over HTTP, in JSON, until it is interrupted.
///
/// A model is called by the last part of its directory. POST /models/NAME/QUESTION asks it, POST /QUESTION the only one that has an
/// answer; GET /openapi.json describes all, GET /models lists the models, GET /metrics is for Prometheus. A model that is written again
/// to its directory is served as soon as it is in memory, and no request fails or waits for it; so is that of a training under way.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Questions:\n  mf, als         recommend, similar, predict, find\n  blockpg         predict\n  lda             topics, words, map\n  \
                  pagerank, hits  top, rank\n\nExamples:\n  megagrid serve movies\n  \
                  curl localhost:8080/recommend -d '{\"users\": [196], \"number\": 5}'\n  \
                  curl localhost:8080/recommend -d '{\"people\": [[[50, 5], [181, 4.5]]]}'\n  \
                  megagrid mf ratings.csv --checkpoint run --checkpoint-every 1 --checkpoint-model &\n  \
                  megagrid serve --watch run --max-age 60"
)]
pub struct Args {
    /// Directories that --model of a training wrote.
    #[arg(required_unless_present = "watch")]
    model: Vec<PathBuf>,
    /// Follow a training: serve the model of its last checkpoint, as it is learned. DIR is that of its --checkpoint, and it needs
    /// --checkpoint-model too. If it has not come to the first one, nothing is served until then. May be given several times.
    #[arg(long, value_name = "DIR")]
    watch: Vec<PathBuf>,
    /// How old a model may be. One that is older goes on answering, but answers say "stale": true, the page says so, and GET /fresh
    /// answers 503. A training that ended or was killed becomes stale too.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    max_age: Option<f64>,
    /// The address to listen at. One that others can reach needs a token.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    bind: IpAddr,
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// A file with the token that requests have to bring: Authorization: Bearer TOKEN. Or the environment has it, in MEGAGRID_TOKEN.
    /// Traffic is not encrypted; put a proxy before it that does.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Answer requests that call the server NAME too, as those that a proxy passes on may. Without a token others are refused (403) than
    /// those that call it localhost or by an address of this machine, so that no page of another site asks through a browser here. May be
    /// given several times.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Threads that answer [default: the cores of the machine].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: Option<u32>,
    /// Questions that are answered, or wait for a thread, at a time; more are told to ask again (429) [default: 8 for each worker].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    concurrency: Option<u32>,
    /// Bytes that a request may have.
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    body_limit: u32,
    /// Seconds that a request may take.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", allow_negative_numbers = true)]
    time_limit: f64,
    /// Seconds from one look at the directories to the next; 0: never, only POST /reload reads them again.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", allow_negative_numbers = true)]
    watch_every: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    // Models come and go as long as the server runs.
    os::give_back_large_arrays();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.workers.map_or(cores, |workers| workers as usize);
    let options = Options {
        models: args.model.clone(),
        trainings: args.watch.clone(),
        max_age: args.max_age.map(|most| seconds("--max-age", most)).transpose()?,
        address: SocketAddr::new(args.bind, args.port),
        token: token(args.token_file.as_deref())?,
        hosts: args.allow_host.clone(),
        threads,
        concurrency: args.concurrency.map_or(8 * threads, |questions| questions as usize),
        body_limit: args.body_limit as usize,
        time_limit: seconds("--time-limit", args.time_limit)?,
        watch_every: Some(seconds("--watch-every", args.watch_every)?).filter(|every| !every.is_zero()),
    };
    interrupt::may_end();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    raise_open_files();
    serve(&options, started, interrupted()).map_err(|error| failure(error, "--port 0 takes a free one"))
}

/// Has as many connections be open as the system allows: who sends slowly has one for long, and others are to get one too.
fn raise_open_files() {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let most = getrlimit(Resource::RLIMIT_NOFILE);
        // What is not allowed stays as it was.
        let _ = most.and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    }
}

/// Tells usage from what went wrong. `free` says how to listen at an address that no other program has.
pub fn failure(error: megagrid_serve::Error, free: &str) -> anyhow::Error {
    match error {
        megagrid_serve::Error::Option(problem) => usage(problem),
        // The text has the cause in it.
        megagrid_serve::Error::Bind { ref source, .. } if source.kind() == ErrorKind::AddrInUse => {
            anyhow::anyhow!("{error} {free}")
        }
        other => other.into(),
    }
}

fn started(address: SocketAddr, models: &[Served]) {
    // Until now there was nothing to end in order.
    interrupt::count_only();
    for served in models {
        let loaded = served.current();
        eprintln!(
            "megagrid: {} ({}) answers {}",
            served.name,
            loaded.manifest.kind,
            loaded.answers.questions().join(", ")
        );
    }
    // Whoever started the server reads where it is; that nobody reads it is no reason to end.
    let _ = output::print(&format!("http://{address}\n"));
}

/// Ends at the first interrupt; the second ends the program at once.
async fn interrupted() {
    while interrupt::count() == 0 {
        megagrid_serve::sleep(Duration::from_millis(50)).await;
    }
    eprintln!("megagrid: ending when questions are answered; once more ends at once");
    std::thread::spawn(|| {
        while interrupt::count() < 2 {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::process::exit(interrupt::EXIT_CODE);
    });
}

fn token(path: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(path) = path else {
        return Ok(std::env::var("MEGAGRID_TOKEN").ok().map(|token| token.trim().to_owned()));
    };
    let text = std::fs::read_to_string(path).map_err(megagrid_training::Error::io(path))?;
    match text.trim() {
        "" => {
            Err(megagrid_training::Error::invalid(path, "there is no token; expected a text that is hard to guess")
                .into())
        }
        token => Ok(Some(token.to_owned())),
    }
}

fn seconds(name: &str, seconds: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| usage(format!("{name} is {seconds}; expected seconds, 0 or more")))
}
