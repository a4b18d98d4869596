//! Several processes read one text together: what they have is what one would.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use megagrid_datasets::cache::EdgeData;
use megagrid_datasets::{Error, Format, Loaded, Prepared, Readers};
use megagrid_datasets::{load_graph, load_graph_with, load_ratings, load_ratings_with};
use megagrid_partition::{EdgeSource, Side};
use proptest::prelude::*;

/// What the threads that stand for processes share: what each sends to each.
#[derive(Debug)]
struct Meeting {
    barrier: Barrier,
    slots: Mutex<Vec<Vec<Vec<u8>>>>,
}

#[derive(Debug)]
pub struct Local {
    process: usize,
    processes: usize,
    /// `None`: the others do as it does.
    meeting: Option<Arc<Meeting>>,
    read_bytes: AtomicU64,
}

impl Local {
    /// A process whose others do as it does.
    pub fn lonely(process: usize, processes: usize) -> Arc<dyn Readers> {
        Arc::new(Self { process, processes, meeting: None, read_bytes: AtomicU64::new(0) })
    }
}

impl Readers for Local {
    fn process(&self) -> usize {
        self.process
    }

    fn processes(&self) -> usize {
        self.processes
    }

    fn all_gather(&self, mine: Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
        self.exchange(vec![mine; self.processes])
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>> {
        let Some(meeting) = &self.meeting else { return Ok(parts) };
        meeting.slots.lock().unwrap()[self.process] = parts;
        meeting.barrier.wait();
        let arrived = meeting.slots.lock().unwrap().iter().map(|parts| parts[self.process].clone()).collect();
        meeting.barrier.wait();
        Ok(arrived)
    }

    fn has_read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
}

/// Does the same in several processes; returns what each returned.
pub fn together<R: Send>(processes: usize, work: impl Fn(Arc<dyn Readers>) -> R + Sync) -> Vec<R> {
    counted(processes, work).into_iter().map(|(returned, _)| returned).collect()
}

/// Does the same in several processes; returns what each returned, and the bytes that it has read.
pub fn counted<R: Send>(processes: usize, work: impl Fn(Arc<dyn Readers>) -> R + Sync) -> Vec<(R, u64)> {
    let meeting =
        Arc::new(Meeting { barrier: Barrier::new(processes), slots: Mutex::new(vec![Vec::new(); processes]) });
    std::thread::scope(|threads| {
        let start = |process| {
            let (meeting, work) = (Some(Arc::clone(&meeting)), &work);
            threads.spawn(move || {
                let local = Arc::new(Local { process, processes, meeting, read_bytes: AtomicU64::new(0) });
                let returned = work(Arc::clone(&local) as Arc<dyn Readers>);
                (returned, local.read_bytes())
            })
        };
        let running: Vec<_> = (0..processes).map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// An edge: right end, left end, data.
type Edge<T> = (u32, u32, T);

fn visited<T: EdgeData>(prepared: &Prepared<T>) -> Vec<Edge<T>> {
    let offsets = prepared.edges.held_offsets().to_vec();
    let mut edges = Vec::new();
    let visit = &mut |left: &[u32], data: &[T]| {
        for right in 0..offsets.len() - 1 {
            let span = offsets[right] as usize..offsets[right + 1] as usize;
            edges.extend(left[span.clone()].iter().zip(&data[span]).map(|(&left, &data)| (right as u32, left, data)));
        }
    };
    prepared.edges.visit_rows(Side::Right, 0..offsets.len() - 1, visit).unwrap();
    edges
}

/// Finds that processes which read a text together have the vertices of one that reads all, and their part of its edges.
pub fn check<T: EdgeData + PartialEq + std::fmt::Debug>(
    processes: usize,
    value: fn(&T) -> f64,
    whole: impl Fn() -> Result<Loaded<T>, Error>,
    part: impl Fn(&Arc<dyn Readers>) -> Result<Loaded<T>, Error> + Sync,
) {
    let expected = whole().unwrap().prepare(Side::Right, true).unwrap();
    let summary = expected.edges.summarize(value).unwrap();
    let edges = visited(&expected);
    // Some have two holders.
    let holders = |left: u32, right: u32| {
        let second = left.is_multiple_of(3).then_some((right as usize % processes) as u16);
        let first = (left as usize % processes) as u16;
        [Some(first), second.filter(|second| *second != first)]
    };
    let found = together(processes, |readers| {
        let found = part(&readers).unwrap().prepare(Side::Right, true).unwrap();
        let summary = found.edges.summarize(value).unwrap();
        found.edges.distribute(&holders).unwrap();
        found.edges.distribute(&holders).unwrap();
        let elsewhere = found.edges.distribute(&|left, _| [Some((left % 7 + 1) as u16), None]);
        assert!(elsewhere.unwrap_err().to_string().contains("are with other processes already"));
        (found, summary)
    });
    for (process, (found, summary_found)) in found.iter().enumerate() {
        for side in [Side::Left, Side::Right] {
            assert_eq!(found.edges.offsets(side), expected.edges.offsets(side));
            assert_eq!(found.names.get(side).unwrap(), expected.names.get(side).unwrap());
        }
        assert_eq!(summary_found.checksum, summary.checksum);
        assert!((summary_found.sum - summary.sum).abs() <= 1e-9 * summary.sum.abs());
        let is_mine = |(right, left, _): &&Edge<T>| holders(*left, *right).contains(&Some(process as u16));
        assert_eq!(visited(found), edges.iter().filter(is_mine).copied().collect::<Vec<_>>(), "process {process}");
    }
}

fn name(kind: u8, line: usize, number: u32) -> String {
    match kind {
        0 => (7 * number).to_string(),
        1 => (u64::MAX - u64::from(number)).to_string(),
        // Integers at first.
        2 if line < 150 => number.to_string(),
        _ => format!("page{number}"),
    }
}

fn edges() -> impl Strategy<Value = Vec<(u32, u32, u8)>> {
    let number = (0..40u32, 0..40u32).prop_map(|(a, b)| a * b / 40);
    prop::collection::vec((number.clone(), number, 0..6u8), 1..400)
}

fn in_file(text: &str, run: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("input.txt");
    fs::write(&path, text).unwrap();
    run(&path);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_graph_is_what_one_would_read((kind, edges, processes) in (0..4u8, edges(), 1..5usize), crlf: bool) {
        let end = if crlf { "\r\n" } else { "\n" };
        let line = |(at, &(a, b, _)): (usize, &(u32, u32, u8))| format!("{}\t{}{end}", name(kind, at, a), name(kind, at, b));
        let text: String = ["# a comment\n".to_owned()].into_iter().chain(edges.iter().enumerate().map(line)).collect();
        let format = Some(Format::Edges);
        in_file(&text, |path| check(processes, |()| 0.0, || load_graph(path, format), |readers| load_graph_with(path, format, Some(readers))));
    }

    #[test]
    fn ratings_are_what_one_would_read((users, items, edges, processes) in (0..4u8, 0..4u8, edges(), 1..5usize)) {
        let line = |(at, &(a, b, rating)): (usize, &(u32, u32, u8))| format!("{},{},{rating}.5\n", name(users, at, a), name(items, at, b));
        let text: String = ["user,item,rating\n".to_owned()].into_iter().chain(edges.iter().enumerate().map(line)).collect();
        let format = Some(Format::Ratings);
        let value = |rating: &f32| f64::from(*rating);
        in_file(text.trim_end(), |path| {
            check(processes, value, || load_ratings(path, format), |readers| load_ratings_with(path, format, Some(readers)));
        });
    }
}

#[test]
fn a_header_is_skipped_whoever_reads_it() {
    let comment = format!("# {}\n", "x".repeat(60));
    for text in ["source,target\n1,2\n3,1\n".to_owned(), comment + "from,to\n1,2\n"] {
        for processes in 1..5 {
            let format = Some(Format::Edges);
            in_file(&text, |path| {
                let whole = || load_graph(path, format);
                assert!(whole().unwrap().into_dataset().unwrap().left_names.is_integers());
                check(processes, |()| 0.0, whole, |readers| load_graph_with(path, format, Some(readers)));
            });
        }
    }
}

#[test]
fn a_line_that_is_wrong_has_its_number() {
    let mut lines: Vec<String> = (0..100).map(|line| format!("{line} {}", line + 1)).collect();
    lines[90] = "90".to_owned();
    in_file(&lines.join("\n"), |path| {
        // Whoever reads that line fails, and the other would then be told; here it reads by itself.
        let read = |process| Local::lonely(process, 2);
        let format = Some(Format::Edges);
        let error = load_graph_with(path, format, Some(&read(1))).unwrap_err().to_string();
        assert!(error.contains("input.txt:91: edge: found \"90\""), "{error}");
        assert!(load_graph_with(path, format, Some(&read(0))).is_ok());
    });
}

#[test]
fn another_input_and_an_empty_one_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [dir.path().join("a"), dir.path().join("b")];
    fs::write(&paths[0], "1 2\n3 4\n").unwrap();
    fs::write(&paths[1], "1 2\n3 5\n").unwrap();
    let format = Some(Format::Edges);
    let said = together(2, |readers| {
        load_graph_with(&paths[readers.process()], format, Some(&readers)).unwrap_err().to_string()
    });
    assert!(said[0].contains("process 1 has another file"), "{said:?}");
    assert!(said[1].contains("process 0 has another file"), "{said:?}");
    fs::write(&paths[0], "# nothing\n\n").unwrap();
    let said = together(2, |readers| load_graph_with(&paths[0], format, Some(&readers)).unwrap_err().to_string());
    assert!(said.iter().all(|said| said.contains("edges")), "{said:?}");
}

#[test]
fn a_cache_is_summed_up_by_all() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("a.mgrid"), dir.path().join("b.mgrid"));
    for (path, rating) in [(&path, 0.1), (&other, 0.2)] {
        let text: String = (0..3000).map(|at| format!("{} {} {rating}\n", at % 97, at % 61)).collect();
        let ratings = megagrid_datasets::parse_ratings(text.as_bytes(), Format::Ratings).unwrap();
        Prepared::new(ratings, &[Side::Left, Side::Right]).write_cache(path).unwrap();
    }
    let value = |rating: &f32| f64::from(*rating);
    let expected = Prepared::<f32>::open(&path).unwrap().edges.summarize(value).unwrap();
    for processes in 1..4 {
        let found = together(processes, |readers| {
            Prepared::<f32>::open_with(&path, &readers).unwrap().edges.summarize(value).unwrap()
        });
        assert!(found.iter().all(|found| *found == expected), "{found:?}, expected {expected:?}");
    }
    let said = together(2, |readers| {
        let path = if readers.process() == 0 { &path } else { &other };
        Prepared::<f32>::open_with(path, &readers).unwrap_err().to_string()
    });
    assert!(said[0].contains("process 1 has another file"), "{said:?}");
}
