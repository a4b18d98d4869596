//! `--trace`: what workers did and when, as a timeline in the trace event format of Chrome, which ui.perfetto.dev and
//! chrome://tracing show.
//!
//! Processes are processes there, workers are threads. Each thread gathers what its workers say, under a lock that nobody else
//! wants before the run has ended.

use std::cmp::Reverse;
use std::fmt::{Debug, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use megagrid_engine::{Peers, TIMELINE, timeline_origin};
use megagrid_partition::parallel::lock;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, filter, layer};

use crate::output::write_text;

/// What is kept of a thread: a part takes 48 bytes here, and about 150 in the file.
const MAX_PARTS: usize = 1 << 22;

static IS_ON: AtomicBool = AtomicBool::new(false);
/// What each thread gathers.
static THREADS: Mutex<Vec<Arc<Mutex<Gathered>>>> = Mutex::new(Vec::new());

thread_local! {
    static GATHERED: Arc<Mutex<Gathered>> = {
        let gathered = Arc::default();
        lock(&THREADS).push(Arc::clone(&gathered));
        gathered
    };
}

/// A part of a timeline, by the names of the engine's events.
#[derive(Clone, Copy, Default)]
struct Part {
    begin: u64,
    took: u64,
    iteration: u32,
    clock: u32,
    process: u32,
    worker: u32,
    /// Places among the thread's names.
    kind: u16,
    name: u16,
}

#[derive(Default)]
struct Gathered {
    names: Vec<String>,
    parts: Vec<Part>,
    /// Parts for which there was no room.
    lost: usize,
}

impl Gathered {
    fn intern(&mut self, name: &str) -> u16 {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        }) as u16
    }
}

/// Listens to the engine's timeline.
struct Recorder;

/// Returns what listens once [`begin`] was called; before that the engine says nothing.
pub fn layer<S: Subscriber + for<'s> LookupSpan<'s>>() -> impl Layer<S> {
    Recorder.with_filter(filter::filter_fn(|metadata| metadata.target() == TIMELINE && IS_ON.load(Ordering::Relaxed)))
}

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        GATHERED.with(|gathered| {
            let gathered = &mut *lock(gathered);
            if gathered.parts.len() == MAX_PARTS {
                gathered.lost += 1;
                return;
            }
            let mut reader = Reader { gathered, part: Part::default() };
            event.record(&mut reader);
            let Reader { gathered, part } = reader;
            gathered.parts.push(part);
        });
    }
}

struct Reader<'g> {
    gathered: &'g mut Gathered,
    part: Part,
}

impl Visit for Reader<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "begin" => self.part.begin = value,
            "took" => self.part.took = value,
            "iteration" => self.part.iteration = value as u32,
            "clock" => self.part.clock = value as u32,
            "process" => self.part.process = value as u32,
            "worker" => self.part.worker = value as u32,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let place = self.gathered.intern(value);
        match field.name() {
            "kind" => self.part.kind = place,
            "name" => self.part.name = place,
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// Begins to listen, before the engine runs.
pub fn begin() {
    IS_ON.store(true, Ordering::Relaxed);
    let _ = timeline_origin();
}

/// Writes what all processes gathered: the first one writes, and all call it.
pub fn end(file: &Path, peers: Option<&dyn Peers>) -> anyhow::Result<()> {
    IS_ON.store(false, Ordering::Relaxed);
    let take = |thread: &Arc<Mutex<Gathered>>| std::mem::take(&mut *lock(thread));
    let gathered: Vec<Gathered> = lock(&THREADS).iter().map(take).collect();
    let lost: usize = gathered.iter().map(|gathered| gathered.lost).sum();
    if lost > 0 {
        tracing::warn!("--trace leaves out the last {lost} parts; trace fewer iterations");
    }
    let origin = since_epoch(timeline_origin());
    let first = match peers {
        Some(peers) => {
            let all = peers.all_gather(origin.to_le_bytes().to_vec())?;
            let origins = all.iter().filter_map(|bytes| Some(u64::from_le_bytes(bytes[..].try_into().ok()?)));
            origins.min().unwrap_or(origin)
        }
        None => origin,
    };
    let mine = events(&gathered, origin - first);
    let all = match peers {
        Some(peers) => peers.gather(mine.into_bytes())?,
        None => Some(vec![mine.into_bytes()]),
    };
    let Some(all) = all else { return Ok(()) };
    let all: Vec<_> = all.into_iter().filter(|events| !events.is_empty()).collect();
    let text = [&b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"[..], &all.join(&b",\n"[..]), b"\n]}\n"].concat();
    let text = String::from_utf8(text).context("a process sent no text as its timeline")?;
    write_text(file, &text)
}

/// Returns nanoseconds from 1970 to a moment.
fn since_epoch(moment: Instant) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(moment.elapsed()).as_nanos() as u64
}

/// Returns events of the format, without a comma at the end; times are `later` by some nanoseconds.
fn events(gathered: &[Gathered], later: u64) -> String {
    let mut tracks = Vec::new();
    let mut text = String::new();
    for Gathered { names, parts, .. } in gathered {
        // What lies around others comes first, although it ended, and was gathered, later.
        let mut parts: Vec<&Part> = parts.iter().rev().collect();
        parts.sort_by_key(|part| (part.begin, Reverse(part.took)));
        for part in parts {
            let Part { process, worker, iteration, clock, .. } = *part;
            if !tracks.contains(&(process, worker)) {
                tracks.push((process, worker));
                for (what, id) in [("process", process), ("worker", worker)] {
                    let kind = if what == "process" { "process_name" } else { "thread_name" };
                    let _ = writeln!(
                        text,
                        r#"{{"name":"{kind}","ph":"M","pid":{process},"tid":{worker},"args":{{"name":"{what} {id}"}}}},"#
                    );
                }
            }
            let (kind, name) = (&names[usize::from(part.kind)], &names[usize::from(part.name)]);
            let shown = match kind.as_str() {
                "iteration" => format!("iteration {iteration}"),
                "clock" => format!("clock {clock}"),
                _ if name.is_empty() => kind.clone(),
                _ => name.clone(),
            };
            let [begin, took] = [part.begin + later, part.took].map(|nanoseconds| nanoseconds as f64 / 1e3);
            let shown = serde_json::Value::String(shown);
            let _ = writeln!(
                text,
                r#"{{"name":{shown},"cat":"{kind}","ph":"X","ts":{begin:.3},"dur":{took:.3},"pid":{process},"tid":{worker},"args":{{"iteration":{iteration},"clock":{clock}}}}},"#
            );
        }
    }
    text.truncate(text.trim_end_matches([',', '\n']).len());
    text
}
