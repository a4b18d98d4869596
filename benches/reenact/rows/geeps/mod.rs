//! GeePS, Figures 4.6, 4.8 and 4.9 to 4.13: memory of layers and budgets, counted on exact shapes; throughput and stalls, in
//! modelled time; accuracy by samples, for real.

mod accuracy;
mod scaling;
mod timing;

use megagrid_geeps::Consistency;
use megagrid_geeps::memory::Plan;
use megagrid_geeps::modelled::{Machine, Setting};
use megagrid_geeps::run::record;

use self::timing::{BSP, IMAGES, MACHINE, ON_HOSTS, WORKERS, plan, time};
use megagrid_benches::findings::Findings;
use megagrid_benches::networks::{krizhevsky, stack};
use megagrid_results::published::Evidence;

pub fn run(findings: &mut Findings) {
    let Machine { operations, memory, copy, network, .. } = MACHINE;
    println!(
        "    Shapes of Krizhevsky's network for 22,000 classes, {IMAGES} images: those of AdamLike are not published."
    );
    println!(
        "    A device of {:.1} T operations/s, a quarter of its peak, and {:.0} GB/s, {:.0} GB/s to it and from it, {:.1} GB/s between {WORKERS} machines.",
        operations / 1e12,
        memory / 1e9,
        copy / 1e9,
        network / 1e9
    );
    if findings.is_wanted("4.6") {
        scaling::images(findings);
    }
    if findings.is_wanted("4.8") {
        scaling::videos(findings);
    }
    if findings.is_wanted("4.9") {
        findings.evidence = Evidence::Counted;
        layers(findings);
    }
    findings.evidence = Evidence::Modelled;
    if findings.is_wanted("4.10") {
        budgets(findings);
    }
    if findings.is_wanted("4.11") {
        large(findings);
    }
    if findings.is_wanted("4.12") {
        stalls(findings);
    }
    if findings.is_wanted("4.13") {
        findings.evidence = Evidence::Real;
        accuracy::run(findings);
    }
}

/// Figure 4.9: what each layer holds at a time. Counted.
fn layers(findings: &mut Findings) {
    let network = krizhevsky(IMAGES);
    let (trace, _) = record(&network, 0).expect("shapes are in order");
    let (least, full) = (Plan::least_budget(&trace), Plan::full_budget(&trace));
    let num_layers = network.layers().len();
    // The backward pass holds more of each layer than the forward pass does.
    let held: Vec<f64> = (0..num_layers).map(|at| 4.0 * trace.layer_len(2 * num_layers - 1 - at) as f64).collect();
    for (layer, bytes) in network.layers().iter().zip(&held) {
        let share = 100.0 * bytes / full as f64;
        println!("    {:<6} {:8.1} MB held backward, {share:.1} % of all", layer.name, bytes / 1e6);
    }
    println!("    all {:.2} GB, least {:.2} GB", full as f64 / 1e9, least as f64 / 1e9);
    let largest = held.iter().copied().fold(0.0, f64::max) / full as f64;
    let most = format!("the largest layer holds {:.0} % of all (17 % of AdamLike)", 100.0 * largest);
    findings.check(most, largest < 0.3);
    let part = least as f64 / full as f64;
    findings.check(format!("with double buffering {:.0} % of all is enough (35 %)", 100.0 * part), part < 0.5);
    let points = held.iter().enumerate().map(|(at, bytes)| ((at + 1) as f64, bytes / 1e6)).collect();
    let axes = ["layer", "MB held at a time"];
    findings.plot(
        "row-20-layers",
        "Memory of each layer, counted (GeePS, Figure 4.9)",
        axes,
        vec![("held".into(), points)],
    );
}

/// Figure 4.10: throughput by budget. Feasibility and bytes are counted, time is modelled.
fn budgets(findings: &mut Findings) {
    let mut lines = Vec::new();
    for images in [IMAGES, IMAGES / 2, IMAGES / 4] {
        lines.extend(budgets_of(findings, images));
    }
    let axes = ["% of the memory that pins all", "images a second of a worker"];
    findings.plot("row-20-budget", "Throughput by budget, modelled (GeePS, Figure 4.10)", axes, lines);
}

type Line = (String, Vec<(f64, f64)>);

/// Returns the throughput of mini-batches by budget, fetched ahead and when asked for.
fn budgets_of(findings: &mut Findings, images: usize) -> [Line; 2] {
    let network = krizhevsky(images);
    let (trace, _) = record(&network, 0).expect("shapes are in order");
    let (least, full) = (Plan::least_budget(&trace), Plan::full_budget(&trace));
    let fits = Plan::new(trace.clone(), least, 0).is_ok() && Plan::new(trace, least - 256, 0).is_err();
    findings.check_by(
        Evidence::Counted,
        format!("{images} images: the least budget is feasible and 256 bytes less are not"),
        fits,
    );
    let mut lines = ["ahead", "when asked"].map(|how| (format!("{images} images, {how}"), Vec::new()));
    for step in 0..=10 {
        let budget = least + (full - least) * step / 10;
        let plan = plan(&network, Some(budget));
        let rates =
            [true, false].map(|prefetch| images as f64 / time(&plan, &MACHINE, &Setting { prefetch, ..BSP }).seconds);
        let percent = 100.0 * budget as f64 / full as f64;
        let moved = plan.moves(1).total() as f64 / 1e9;
        println!(
            "    {images} images, {percent:5.1} % of {:.2} GB: {moved:.2} GB an iteration, {:.0} images/s, {:.0} without prefetch",
            full as f64 / 1e9,
            rates[0],
            rates[1]
        );
        lines.iter_mut().zip(rates).for_each(|(line, rate)| line.1.push((percent, rate)));
    }
    let rates = |line: usize| lines[line].1.iter().map(|point| point.1).collect::<Vec<f64>>();
    let (ahead, asked) = (rates(0), rates(1));
    let kept = ahead[0] / ahead[10];
    let published = if images == IMAGES { " (73 %)" } else { "" };
    let claim = format!("{images} images: the least budget keeps {:.0} % of the throughput{published}", 100.0 * kept);
    findings.check(claim, kept >= 0.5);
    let claim = format!("{images} images: fetching ahead is never slower");
    findings.check(claim, ahead.iter().zip(&asked).all(|(ahead, asked)| ahead >= asked));
    let grows = ahead.windows(2).all(|pair| pair[1] >= 0.97 * pair[0]);
    findings.check(format!("{images} images: more memory is not slower, but for 3 %"), grows);
    lines
}

/// Figure 4.11: very large networks in 5 GB. Feasibility and bytes are counted, time is modelled.
fn large(findings: &mut Findings) {
    /// Outputs of a layer whose parameters are 373 MB.
    const WIDTH: usize = 9656;
    const BUDGET: u64 = 5_000_000_000;
    let mut points = Vec::new();
    for layers in [4, 8, 16, 32, 56] {
        let network = stack(layers, WIDTH, IMAGES);
        let plan = plan(&network, Some(BUDGET));
        let [_, params] = plan.table_bytes();
        let seconds = time(&plan, &MACHINE, &BSP).seconds;
        let rate = (network.products() / 3) as f64 / seconds;
        println!(
            "    {layers:2} layers, {:5.2} GB of parameters in {:.2} GB: {:.0} G connections/s",
            params as f64 / 1e9,
            plan.resident_bytes() as f64 / 1e9,
            rate / 1e9
        );
        points.push((params as f64 / 1e9, rate / 1e9));
    }
    let part = points[4].1 / points[0].1;
    let claim = format!("a connection of 20 GB costs about what one of 1.5 GB does: {part:.2} of the rate");
    findings.check(claim, part > 0.6);
    let axes = ["GB of parameters", "G connections a second of a worker"];
    let title = "Very large networks in 5 GB, modelled (GeePS, Figure 4.11)";
    findings.plot("row-20-large", title, axes, vec![("5 GB".into(), points)]);
}

/// Figure 4.12: stalls by slack. Modelled.
fn stalls(findings: &mut Findings) {
    let (tables, one) = (krizhevsky(IMAGES), krizhevsky(IMAGES).in_one_table());
    let systems = [("a table a layer", &tables, BSP), ("one table", &one, BSP), ("server on hosts", &tables, ON_HOSTS)];
    let kinds = [(0.0, Consistency::Bsp), (1.0, Consistency::Ssp { slack: 1 }), (2.0, Consistency::Async)];
    let mut lines = Vec::new();
    for (name, network, setting) in systems {
        let plan = plan(network, None);
        let part = |consistency| {
            let time = time(&plan, &MACHINE, &Setting { consistency, ..setting });
            100.0 * time.stalled / time.seconds
        };
        let points: Vec<(f64, f64)> = kinds.iter().map(|&(slack, consistency)| (slack, part(consistency))).collect();
        println!(
            "    {name:<16} stalled {:.1} % with slack 0, {:.1} % with 1, {:.1} % without bound",
            points[0].1, points[1].1, points[2].1
        );
        lines.push((name.to_owned(), points));
    }
    let at = |line: usize, slack: usize| lines[line].1[slack].1;
    findings.check("with slack 0 a table a layer stalls less than one table", at(0, 0) < at(1, 0));
    findings.check("one table stalls less than a server on hosts", at(1, 0) < at(2, 0));
    findings
        .check("a server on hosts stalls more without bound than a table a layer with slack 0", at(2, 2) > at(0, 0));
    let axes = ["slack (2: none)", "% of time without computing"];
    findings.plot("row-20-stalls", "Stalls by slack, modelled (GeePS, Figure 4.12)", axes, lines);
}
