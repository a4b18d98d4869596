//! How fast sets of active vertices spread: PageRank in the form that passes on only what is new, after links came or went, in plain loops
//! of double precision. A page rests while what it has not passed on is so little that all pages together stay below half of the
//! tolerance; what an iteration costs then is the links of those that do not rest, or, where groups of pages are left out as a whole, the
//! links of groups in which one does not.
//!
//!     cargo bench -p megagrid-engine --bench spread [-- LINKS.txt.gz …]
//!
//! Of an R-MAT graph of 2^18 pages, by falling degree, and of graphs in files. Work is in passes over all links. Without `--bench` (as
//! `cargo test` runs it) the graph is tiny.

use std::path::Path;

use megagrid_datasets::synthetic::{RmatSettings, write_edges};
use megagrid_datasets::{Format, read_graph};
use megagrid_partition::SplitMix;

const DAMPING: f64 = 0.85;
/// L1 distance from the ranks at which a run ends.
const TOLERANCE: f64 = 1e-8;
/// Pages in the groups that are left out as a whole; the engine's shards have up to 16,384 on this machine.
const GROUPS: [usize; 3] = [64, 1024, 16_384];

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|argument| argument == "--bench");
    arguments.retain(|argument| !argument.starts_with("--"));
    let scale = if full { 18 } else { 6 };
    let made = std::env::temp_dir().join(format!("megagrid-spread-{}.txt", std::process::id()));
    let graph = RmatSettings { scale, ..RmatSettings::default() }.generate().expect("a scale of 1 to 31");
    write_edges(&made, &graph).expect("a temporary file");
    show(&format!("R-MAT {scale}"), &made);
    std::fs::remove_file(&made).expect("a temporary file");
    arguments.iter().for_each(|path| show(path, Path::new(path)));
}

fn show(name: &str, path: &Path) {
    let all = read_graph(path, Some(Format::Edges)).expect("a graph").in_degree_order().edges;
    let links: Vec<(u32, u32)> = all.left.iter().copied().zip(all.right.iter().copied()).collect();
    println!("\n{name}: {} pages, {} links", all.num_left, links.len());
    println!(
        "| change | iterations | active pages, %, iterations 1 to 5 | passes: all | active pages | groups of {GROUPS:?} |"
    );
    println!("|---|---|---|---|---|---|");
    let mut fresh = Ranking::new(&links, all.num_left);
    println!("| from nothing {}", fresh.run());
    for part in [0.0001, 0.001, 0.01, 0.1] {
        let mut random = SplitMix::new(7, (part * 1e6) as u64);
        let few: Vec<_> = links.iter().copied().filter(|_| random.unit() >= part).collect();
        for (what, before, after) in [("added", &few, &links), ("removed", &links, &few)] {
            let mut old = Ranking::new(before, all.num_left);
            old.run();
            println!("| {:.2} % {what} {}", part * 100.0, Ranking::new(after, all.num_left).from(&old).run());
        }
    }
}

/// Ranks up to a common factor, `x = 1 + d A x`, and what is not yet passed on.
struct Ranking {
    /// Where the links out of each page begin.
    offsets: Vec<usize>,
    targets: Vec<u32>,
    ranks: Vec<f64>,
    rest: Vec<f64>,
}

impl Ranking {
    fn new(links: &[(u32, u32)], pages: usize) -> Self {
        let mut offsets = vec![0; pages + 1];
        links.iter().for_each(|&(from, _)| offsets[from as usize + 1] += 1);
        (0..pages).for_each(|page| offsets[page + 1] += offsets[page]);
        let (mut next, mut targets) = (offsets.clone(), vec![0; links.len()]);
        for &(from, to) in links {
            targets[next[from as usize]] = to;
            next[from as usize] += 1;
        }
        Self { offsets, targets, ranks: vec![0.0; pages], rest: vec![1.0; pages] }
    }

    fn links_of(&self, page: usize) -> &[u32] {
        &self.targets[self.offsets[page]..self.offsets[page + 1]]
    }

    /// Begins at the ranks of the same pages with other links.
    fn from(mut self, before: &Self) -> Self {
        self.ranks.clone_from(&before.ranks);
        let mut rest: Vec<f64> = self.ranks.iter().map(|rank| 1.0 - rank).collect();
        for (page, rank) in self.ranks.iter().enumerate() {
            let links = self.links_of(page);
            links.iter().for_each(|&to| rest[to as usize] += DAMPING * rank / links.len() as f64);
        }
        Self { rest, ..self }
    }

    /// Runs to the tolerance; returns the rest of a line of the table.
    fn run(&mut self) -> String {
        let (pages, links) = (self.ranks.len(), self.targets.len() as f64);
        let (mut active, mut by_page, mut by_group) = (Vec::new(), 0, [0; GROUPS.len()]);
        loop {
            let sum = |of: &[f64]| of.iter().map(|x| x.abs()).sum::<f64>();
            let most = TOLERANCE * sum(&self.ranks) * (1.0 - DAMPING);
            if sum(&self.rest) < most {
                break;
            }
            let is_active: Vec<bool> = self.rest.iter().map(|rest| rest.abs() > 0.5 * most / pages as f64).collect();
            active.push(100.0 * is_active.iter().filter(|is_active| **is_active).count() as f64 / pages as f64);
            by_page += (0..pages).filter(|&page| is_active[page]).map(|page| self.links_of(page).len()).sum::<usize>();
            for (work, size) in by_group.iter_mut().zip(GROUPS) {
                let groups = is_active.chunks(size).enumerate().filter(|(_, group)| group.contains(&true));
                let ends =
                    groups.map(|(at, group)| [at * size, at * size + group.len()].map(|page| self.offsets[page]));
                *work += ends.map(|[begin, end]| end - begin).sum::<usize>();
            }
            self.pass_on(&is_active);
        }
        let first: Vec<String> = active.iter().take(5).map(|part| format!("{part:.0}")).collect();
        let [groups, by_page] = [
            by_group.map(|work| format!("{:.1}", work as f64 / links)).join(", "),
            format!("{:.1}", by_page as f64 / links),
        ];
        format!("| {} | {} | {} | {by_page} | {groups} |", active.len(), first.join(" "), active.len())
    }

    fn pass_on(&mut self, is_active: &[bool]) {
        let mut next = vec![0.0; self.rest.len()];
        for page in 0..self.rest.len() {
            let rest = self.rest[page];
            if !is_active[page] {
                next[page] += rest;
                continue;
            }
            self.ranks[page] += rest;
            let links = self.links_of(page);
            links.iter().for_each(|&to| next[to as usize] += DAMPING * rest / links.len() as f64);
        }
        self.rest = next;
    }
}
