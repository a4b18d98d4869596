//! TuX², Figure 15: how evenly the work of a block of features is shared out, by formula from the features' numbers of values.

use megagrid_partition::SplitMix;

use megagrid_benches::findings::Findings;

const FEATURES: usize = 1_000_000;
const BLOCKS: usize = 64;
/// How fast the number of a feature's values falls with its rank.
const ZIPF: f64 = 1.1;
/// Values of the most frequent feature.
const MOST: f64 = 4e6;
const THREADS: [usize; 2] = [16, 4];

/// Returns the values of each feature, in the order of their ids.
fn degrees(by_frequency: bool) -> Vec<u64> {
    let mut degrees: Vec<u64> = (1..=FEATURES).map(|rank| (MOST * (rank as f64).powf(-ZIPF)).ceil() as u64).collect();
    let mut random = SplitMix::new(1, 0);
    if !by_frequency {
        for last in (1..degrees.len()).rev() {
            degrees.swap(last, random.below(last as u64 + 1) as usize);
        }
    }
    degrees
}

/// How the columns of a block are shared out among threads.
#[derive(Clone, Copy)]
enum Split {
    /// As many columns for each, as DARLIN does.
    Columns,
    /// Runs of whole columns with about as many values.
    WholeColumns,
    /// By values, heavy columns in parts, as a vertex-cut does.
    Edges,
}

/// Returns the values of the busiest thread.
fn busiest(block: &[u64], threads: usize, split: Split) -> u64 {
    let total: u64 = block.iter().sum();
    match split {
        Split::Columns => block.chunks(block.len().div_ceil(threads)).map(|part| part.iter().sum()).max().unwrap_or(0),
        Split::WholeColumns => {
            let (mut before, mut most, mut mine, mut thread) = (0, 0, 0, 1);
            for &degree in block {
                // A column goes to the thread in whose part its middle is.
                while (before + degree / 2) * threads as u64 >= thread * total && thread < threads as u64 {
                    (most, mine, thread) = (most.max(mine), 0, thread + 1);
                }
                mine += degree;
                before += degree;
            }
            most.max(mine)
        }
        Split::Edges => total.div_ceil(threads as u64),
    }
}

pub fn run(findings: &mut Findings) {
    print!("  {FEATURES} features in {BLOCKS} blocks of as many ids, values by rank^-{ZIPF}; ");
    println!("busiest thread by the mean");
    println!("    ids             threads  equal columns  whole columns  edges");
    let mut columns = f64::INFINITY;
    for (name, by_frequency) in [("hashed", false), ("by frequency", true)] {
        let degrees = degrees(by_frequency);
        for threads in THREADS {
            let of = |split| {
                let blocks = degrees.chunks(FEATURES.div_ceil(BLOCKS));
                let most: u64 = blocks.map(|block| busiest(block, threads, split)).sum();
                most as f64 * threads as f64 / degrees.iter().sum::<u64>() as f64
            };
            let found = [Split::Columns, Split::WholeColumns, Split::Edges].map(of);
            println!("    {name:<16}{threads:>7}{:>15.2}{:>15.2}{:>7.2}", found[0], found[1], found[2]);
            columns = columns.min(found[0]);
        }
    }
    findings.check(format!("equal columns: at least 1.5 times the mean: {columns:.2}"), columns >= 1.5);
    findings.cannot(
        "edges are shared out evenly by construction, and real threads are two here: `megagrid blockpg` reports its busiest worker, \
         1.01 to 1.10 of the mean on clicks",
    );
}
