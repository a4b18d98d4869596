//! Processes that are killed or stopped: the job goes on from its last checkpoint, and ends where it would have ended.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use megagrid_partition::SplitMix;

use crate::launched::{self, end, process, send};
use crate::{Place, done, json, run};

/// Enough for a kill to come in the middle.
const ITERATIONS: u64 = 40;

/// When a process is to be killed.
#[derive(Clone, Copy, Debug)]
struct Moment {
    victim: usize,
    /// When this many iterations are saved, or a few more,
    iteration: u64,
    /// and so long after it.
    delay: Duration,
    /// Not before the next checkpoint is being written.
    during_checkpoint: bool,
}

impl Moment {
    fn draw(seed: u64, during_checkpoint: bool) -> Self {
        let mut random = SplitMix::new(seed, 0);
        let mut below = |n| random.below(n);
        let (victim, iteration) = (below(4) as usize, 2 + below(ITERATIONS / 2));
        // The first process writes.
        let victim = if during_checkpoint && seed.is_multiple_of(2) { 0 } else { victim };
        Self { victim, iteration, delay: Duration::from_micros(below(3000)), during_checkpoint }
    }

    /// Waits for the moment.
    fn wait(self, directory: &str) {
        launched::wait(|| launched::newest(directory) >= Some(self.iteration));
        if self.during_checkpoint {
            let begun = |entry: fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".tmp");
            launched::wait(|| fs::read_dir(directory).unwrap().flatten().any(begun));
        }
        std::thread::sleep(self.delay);
    }
}

/// A job of four processes that saves every iteration.
struct Job {
    place: Place,
    /// What it ends at undisturbed.
    objective: f64,
}

impl Job {
    fn new() -> Self {
        let mut job = Self { place: Place::new(), objective: 0.0 };
        let (code, messages) = end(job.launch("undisturbed", &[]));
        assert_eq!((code, messages.as_str()), (Some(0), ""));
        job.objective = job.result("undisturbed");
        job
    }

    fn launch(&self, name: &str, options: &[&str]) -> Child {
        let (ratings, saved) = (self.place.ratings(), self.place.name(name));
        let record = format!("{saved}.json");
        let iterations = ITERATIONS.to_string();
        let command = [&*ratings, "--iterations", &iterations, "--checkpoint", &saved, "--checkpoint-every", "1"];
        launched::mf(&[&["-n", "4"], options].concat(), &[&command[..], &["--json", &record]].concat())
    }

    fn result(&self, name: &str) -> f64 {
        let record = json(self.place.path(&format!("{name}.json")));
        assert_eq!(record["result"]["iterations"], ITERATIONS);
        record["result"]["objective"].as_f64().unwrap()
    }

    /// Kills or stops a process of a run, which has to end as if it had not. Returns what was said.
    fn disturb(&self, name: &str, signal: &str, moment: Moment) -> String {
        let launched = self.launch(name, &["--restarts", "1"]);
        moment.wait(&self.place.name(name));
        send(signal, process(&launched, moment.victim, None));
        let (code, messages) = end(launched);
        assert_eq!(code, Some(0), "{moment:?}: {messages}");
        // What the restart found was whole.
        assert!(messages.contains("restart 1 of 1 from the last checkpoint in "), "{moment:?}: {messages}");
        assert!(!messages.contains("passed over") && !messages.contains("panicked"), "{moment:?}: {messages}");
        let (found, expected) = (self.result(name), self.objective);
        assert!((found / expected - 1.0).abs() < 0.01, "{moment:?}: {found}, expected {expected}");
        messages
    }
}

#[test]
fn a_killed_job_ends_where_it_would_have_ended() {
    let job = Job::new();
    for seed in 0..3 {
        job.disturb(&format!("killed-{seed}"), "-KILL", Moment::draw(seed, seed == 2));
    }
}

/// A search is not saved and the run between two is: the one that is started again does not search again.
#[test]
fn a_killed_job_that_tunes_itself_goes_on_with_its_setting() {
    let place = Place::new();
    let ratings = place.ratings();
    let launch = |name: &str, options: &[&str]| {
        let (saved, record) = (place.name(name), place.name(&format!("{name}.json")));
        let command = [&ratings, "--iterations", "40", "--no-retune", "--dims", "4", "--json", &record];
        let saves = ["--checkpoint", &saved, "--checkpoint-every", "1"];
        launched::tune_mf(&[&["-n", "2"], options].concat(), &[&command[..], &saves].concat())
    };
    let result = |name: &str| {
        let record = json(place.path(&format!("{name}.json")));
        (record["result"]["objective"].as_f64().unwrap(), record["tuning"]["settings"].to_string())
    };
    assert_eq!(end(launch("undisturbed", &[])), (Some(0), String::new()));
    for victim in [0, 1] {
        let name = format!("killed-{victim}");
        let launched = launch(&name, &["--restarts", "1"]);
        launched::wait(|| launched::newest(place.path(&name)) >= Some(8));
        send("-KILL", process(&launched, victim, None));
        let (code, messages) = end(launched);
        assert_eq!(code, Some(0), "{messages}");
        assert!(messages.contains("restart 1 of 1 from the last checkpoint in "), "{messages}");
        assert!(!messages.contains("passed over") && !messages.contains("panicked"), "{messages}");
        assert_eq!(result(&name), result("undisturbed"));
    }
}

#[test]
fn a_stalled_job_ends_where_it_would_have_ended() {
    let job = Job::new();
    job.disturb("stalled", "-STOP", Moment::draw(7, false));
}

/// Killed between two looks, while others are ahead of it: all end soon, and another shape goes on from the last look.
#[test]
fn a_job_with_slack_ends_soon_and_another_shape_goes_on() {
    let place = Place::new();
    let (ratings, saved) = (place.ratings(), place.name("saved"));
    let slack = ["--consistency", "essp", "--slack", "3", "--evaluate-every", "10", "--inject", "delay:0.002"];
    let command = [&*ratings, "--work-per-clock", "1", "--step", "0.02"];
    let saves = ["--iterations", "100000", "--checkpoint", &saved, "--checkpoint-every", "10"];
    let launched = launched::mf(&["-n", "3"], &[&command[..], &saves, &slack].concat());
    launched::wait(|| launched::newest(&saved) >= Some(10));
    let begin = Instant::now();
    send("-KILL", process(&launched, 1, None));
    let (code, messages) = end(launched);
    assert!(code != Some(0) && !messages.contains("panicked"), "{messages}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let last = launched::newest(&saved).unwrap();
    assert!(last.is_multiple_of(10), "{last}");
    let more = (last + 3).to_string();
    done(&[&["mf", "-q", "-w", "2", "--resume", &saved, "--iterations", &more], &command[..]].concat());
}

/// What `cargo soak` runs.
#[test]
#[ignore = "twenty kills, minutes"]
fn soak() {
    let job = Job::new();
    let kills = 20;
    let mut seconds = Vec::new();
    for seed in 0..kills {
        let begin = Instant::now();
        let moment = Moment::draw(100 + seed, seed % 3 == 0);
        let messages = job.disturb(&format!("soak-{seed}"), "-KILL", moment);
        seconds.push(begin.elapsed().as_secs_f64());
        println!("{seed:>2}: {moment:?}: {:.1} s\n{messages}", seconds.last().unwrap());
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    println!(
        "{kills} kills, {kills} jobs ended within 1 % of the objective; median {median:.1} s a job, longest {:.1} s",
        seconds[seconds.len() - 1]
    );
}

#[test]
fn a_damaged_checkpoint_is_refused_by_name_once() {
    let place = Place::new();
    let (ratings, saved) = (place.ratings(), place.name("saved"));
    let common = ["mf", &ratings, "-q", "-w", "1"];
    done(&[&common[..], &["--iterations", "3", "--checkpoint", &saved]].concat());
    let file = place.path("saved/iteration-00003/right-sync.bin");
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[200] ^= 1;
    let manifest = place.path("saved/iteration-00003/checkpoint.json");
    let refused = |part: &str| {
        let resume = ["--iterations", "5", "--resume", &saved];
        let ran = run(&[&["launch", "-n", "2", "--"], &common[..], &resume].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(part), "no \"{part}\" in: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("; name a directory").count(), 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains("[process 1]"), "{}", ran.stderr);
    };
    fs::write(&file, flipped).unwrap();
    refused("right-sync.bin: checksum");
    fs::write(&file, &whole[..100]).unwrap();
    refused("right-sync.bin: 100 bytes found");
    fs::write(&file, &whole).unwrap();
    fs::write(&manifest, "{\"not\": \"ours\"}").unwrap();
    refused("checkpoint.json: missing field");
}
