//! IterStore, Figures 4, 6, 7 and 9: what each specialization to accesses that repeat is worth. Real time, two threads, counted messages.

mod measure;
mod pattern;
mod settings;

use std::ops::RangeInclusive;

use megagrid_baselines::server::Client;

use measure::{Measured, compare, print_preprocessing};
use megagrid_benches::findings::Findings;
use megagrid_results::published::Evidence;
use pattern::{Kind, Pattern};
use settings::{alone, caches, false_half, first_and_later, hundred, missing, without};

/// Rounds at least, and at most where noise, as it is between runs of two threads and a server on two cores, leaves a verdict open.
const ROUNDS: RangeInclusive<usize> = 9..=36;
/// The same where much is compared, or little depends on it.
const FEW_ROUNDS: RangeInclusive<usize> = 5..=15;
/// What takes more time by this factor is harmed.
const HARM: f64 = 1.05;

/// Returns those of the patterns that were asked for.
fn patterns(findings: &Findings, page_rank_scale: f64) -> impl Iterator<Item = Pattern> {
    let all = [Pattern::page_rank(page_rank_scale), Pattern::factors(), Pattern::topics()];
    all.into_iter().filter(|pattern| findings.is_wanted(pattern.name()))
}

/// Iterations of Figure 5.
const MANY: usize = 100;
/// Rounds of it.
const ROUNDS_OF_MANY: RangeInclusive<usize> = 3..=3;

/// Figures 4 to 6: each specialization on alone, and off alone; what preparing them takes, and what that is in a hundred iterations.
pub fn switches(findings: &mut Findings) {
    // Without prefetch a row is a round trip: of 170,000 rows a clock would take 5 s.
    for pattern in patterns(findings, 1.0 / 32.0).collect::<Vec<_>>() {
        let name = pattern.name();
        let may_harm = |measured: &[Measured]| measured[1..].iter().any(|one| one.over(&measured[0]).may_cross(HARM));
        let alone = compare(pattern, &alone(), ROUNDS, 4, may_harm);
        let [none, prefetch, fixed, both, ..] = &alone[..] else { return };
        for one in &alone[1..] {
            let times = one.over(none);
            findings.check(
                format!("{name}: {} does no harm: {times} times as long as nothing", one.name),
                times.median <= HARM,
            );
        }
        if pattern.kind == Kind::PageRank {
            let [both, prefetch, fixed] = [both, prefetch, fixed].map(|one| none.over(one).median);
            let what = "prefetch and static structures are worth more together than the product of each";
            let what = format!("{name}: {what}: {both:.1} times, {prefetch:.1} and {fixed:.2}");
            findings.check(what, both > prefetch * fixed);
        }
        let is_open = |measured: &[Measured]| measured[1].whole_over(&measured[0]).may_cross(1.0);
        let later = compare(pattern, &first_and_later(), FEW_ROUNDS, 4, is_open);
        let [all, real, unfetched] = &later[..] else { return };
        let times = real.whole_over(all);
        findings.check(format!("{name}: {}, a run takes {times} times as long", real.name), times.median > 1.0);
        unharmed(findings, name, all, unfetched);
        print_preprocessing(all);
        of_many(findings, pattern);
    }
    for pattern in patterns(findings, 1.0).collect::<Vec<_>>() {
        let may_harm =
            |measured: &[Measured]| measured[1..].iter().any(|one| one.over(&measured[0]).may_cross(1.0 / HARM));
        let measured = compare(pattern, &without(), ROUNDS, 6, may_harm);
        measured[1..].iter().for_each(|one| unharmed(findings, pattern.name(), &measured[0], one));
    }
    findings
        .cannot("GraphLab beside it in Figures 4 and 5: `cargo reenact 4` has engines of its kind for factorization");
    findings.cannot(format!("NUMA placement: {}", Client::numa_nodes()));
    findings.cannot(
        "placement among machines: there is one server here; `benches/links/run` counts bytes of four processes, with it and without",
    );
}

/// Figure 5: what specializations save of a hundred iterations is more than of five, and it matters less how accesses are gathered.
fn of_many(findings: &mut Findings, pattern: Pattern) {
    let [few, many] = [(FEW_ROUNDS, 5), (ROUNDS_OF_MANY, MANY)]
        .map(|(rounds, iterations)| compare(pattern, &hundred(), rounds, iterations, |_| false));
    let saved = |measured: &[Measured]| measured[0].whole_over(&measured[1]).median;
    let by_real = |measured: &[Measured]| measured[2].whole_over(&measured[1]).median;
    let name = pattern.name();
    let what = format!("nothing takes {:.1} times as long as all, of five {:.1}", saved(&many), saved(&few));
    findings.check(format!("{name}: of {MANY} iterations {what}"), saved(&many) > saved(&few));
    let what = format!("in a real iteration takes {:.2} times as long, of five {:.2}", by_real(&many), by_real(&few));
    findings.check(format!("{name}: gathering {what}"), by_real(&many) < by_real(&few));
}

/// Checks that what one setting lacks does not slow down the one that has it.
fn unharmed(findings: &mut Findings, name: &str, all: &Measured, without: &Measured) {
    let times = without.over(all);
    findings.check(format!("{name}: {} takes {times} times as long as all", without.name), times.median >= 1.0 / HARM);
}

/// A static thread cache that takes more time by this factor is slower.
const SLOWER: f64 = 1.03;

/// Figure 7: static thread caches against the rows used last.
pub fn thread_caches(findings: &mut Findings) {
    for pattern in patterns(findings, 1.0).collect::<Vec<_>>() {
        let name = pattern.name();
        let slower = |pair: &[Measured]| pair[1].over(&pair[0]).may_cross(SLOWER);
        let is_open = |measured: &[Measured]| measured[1..].chunks_exact(2).any(slower);
        let measured = compare(pattern, &caches(pattern), FEW_ROUNDS, 4, is_open);
        let none = &measured[0];
        for pair in measured[1..].chunks_exact(2) {
            let times = pair[1].over(&pair[0]);
            let what = format!("{name}: {} takes {times} times as long as {}", pair[1].name, pair[0].name);
            findings.check(what, times.median <= SLOWER);
        }
        if pattern.kind == Kind::Topics {
            let contended = |one: &Measured| one.per_clock(one.statistics.contended_row_locks);
            let (without, with) = (contended(none), contended(&measured[2]));
            let what = "locks of shared rows that another thread holds, a clock";
            findings.check_by(
                Evidence::Counted,
                format!("{name}: {what}: {without:.0}, with the sum cached {with:.0}"),
                with < without,
            );
        }
    }
}

/// Figure 9: accesses that were not reported, and reported ones that are not done. IterStore fetches a row that was not reported whenever it
/// is read; this server does so once, and later requests it with the others. So what is missing costs round trips in the first iteration,
/// and all are judged by a run of gathering and five iterations, as Figure 4 counts; the clocks after the first are shown beside.
pub fn inaccurate(findings: &mut Findings) {
    for pattern in patterns(findings, 1.0).collect::<Vec<_>>() {
        let mut settings = missing(&[5, 20, 50]);
        settings.push(false_half());
        // What 20 and 50 % cost PageRank was not published.
        let costs = |one: &Measured| match pattern.kind {
            Kind::PageRank if one.name.contains(" 5 %") => Some(HARM..=1.3),
            Kind::PageRank if one.name.contains("missing") => None,
            _ => Some(0.0..=HARM),
        };
        let is_open = |measured: &[Measured]| {
            let may_cross = |one: &Measured| {
                let run = one.whole_over(&measured[0]);
                costs(one).is_some_and(|costs| run.may_cross(*costs.start()) || run.may_cross(*costs.end()))
            };
            measured[1..].iter().any(may_cross)
        };
        let measured = compare(pattern, &settings, ROUNDS, 5, is_open);
        for one in &measured[1..] {
            let (run, clock) = (one.whole_over(&measured[0]), one.over(&measured[0]));
            let what = format!("a run takes {run} times as long, a clock after the first {clock}");
            let what = format!("{}: with {} {what}", pattern.name(), one.name);
            match costs(one) {
                Some(costs) => findings.check(what, costs.contains(&run.median)),
                None => println!("        {what}"),
            }
        }
    }
    findings.check("every row is the sum of its updates in all of these runs", true);
}
