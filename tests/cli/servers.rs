//! `megagrid compare`: what a parameter server may do, or be told to do without, and what that costs.

use crate::{Place, done, fails, json};

#[test]
fn a_bounded_cache_changes_no_objective() {
    let place = Place::new();
    let record = place.name("cached.json");
    let link = |at: usize| format!("{} {}\n", at * 7 % 500, (at * at + 3) % 500);
    let graph = place.file("many.txt", (0..3000).map(link).collect::<String>());
    let args = ["compare", "pagerank", &graph, "--repeat", "1", "--iterations", "4", "--systems"];
    let run = |more: &[&str]| {
        done(&[&args[..], &["lazytable", "--json", &record], more].concat());
        let found = &json(&record)["systems"][0];
        ["objective", "sent_bytes", "memory_bytes"].map(|name| found[name]["median"].as_f64().unwrap())
    };
    let ([all, bytes, memory], [few, more_bytes, less]) = (run(&[]), run(&["--cached-rows", "20"]));
    assert!((few / all - 1.0).abs() < 1e-6, "{few} with few rows, {all} with all");
    assert!(more_bytes > bytes && less < memory, "{bytes} and {more_bytes} bytes sent, {memory} and {less} kept");
    fails(&[&args[..], &["essp", "--cached-rows", "20"]].concat(), 2, &["--cached-rows is for lazytable"]);
    fails(&[&args[..], &["essp", "--no-prefetch"]].concat(), 2, &["--no-prefetch is for lazytable"]);
}

#[test]
fn without_prefetch_rows_are_requested_one_by_one() {
    let place = Place::new();
    let (record, page) = (place.name("prefetch.json"), place.name("prefetch.html"));
    let args = ["compare", "mf", &place.ratings(), "--repeat", "1", "--iterations", "2", "--systems", "lazytable"];
    let run = |more: &[&str]| {
        done(&[&args[..], &["-w", "1", "--json", &record, "--report", &page], more].concat());
        let found = &json(&record)["systems"][0];
        let messages = &found["runs"][0]["iterations"][1]["sent"]["deltas"]["messages"];
        (found["objective"]["median"].as_f64().unwrap(), messages.as_u64().unwrap())
    };
    let ((before, few), (when_read, many)) = (run(&[]), run(&["--no-prefetch"]));
    assert_eq!(before.to_bits(), when_read.to_bits(), "{before}, {when_read} without prefetch");
    assert!(2 * few < many, "{few} messages, {many} without prefetch");
    assert!(std::fs::read_to_string(&page).unwrap().contains("when they were read"), "the page says so");
}

#[test]
fn servers_step_items_themselves() {
    let place = Place::new();
    let (ratings, record, page) = (place.ratings(), place.name("steps.json"), place.name("steps.html"));
    let args = ["compare", "mf", &ratings, "--repeat", "1", "--iterations", "8", "--dims", "4", "-w", "1"];
    let run =
        [&args[..], &["--gradient", "in-place", "--server-steps", "--systems", "megagrid,ps-naive,essp,iterstore"]];
    done(&[&run.concat()[..], &["--json", &record, "--report", &page]].concat());
    let found = json(&record);
    assert_eq!(found["server_steps"], true);
    let objectives = [0, 1, 2, 3].map(|at| found["systems"][at]["objective"]["median"].as_f64().unwrap());
    let [megagrid, naive, essp, iterstore] = objectives;
    assert!((naive / essp - 1.0).abs() < 1e-4 && (iterstore / essp - 1.0).abs() < 1e-4, "{objectives:?}");
    assert!(essp.is_finite() && essp != megagrid, "{objectives:?}");
    assert!(std::fs::read_to_string(page).unwrap().contains("Parameter servers stepped items themselves"));

    fails(&[&args[..], &["--server-steps"]].concat(), 2, &["--server-steps goes with --gradient in-place"]);
    let alone = [&args[..], &["--gradient", "in-place", "--server-steps", "--systems", "megagrid"]].concat();
    fails(&alone, 2, &["--server-steps is for parameter servers"]);
    let ranks = ["compare", "pagerank", &place.graph(), "--server-steps"];
    fails(&ranks, 2, &["--server-steps is for mf"]);
}

/// A virtual iteration comes before the first one, which then asks for no row by itself.
#[test]
fn iterstore_gathers_accesses_before_the_first_iteration() {
    let place = Place::new();
    let graph = place.graph();
    let first_messages = |how: &[&str]| {
        let record = place.name("gather.json");
        let args = ["compare", "pagerank", &graph, "--systems", "iterstore", "--repeat", "1", "--iterations", "3"];
        let text = done(&[&args, how, &["-w", "1", "--json", &record]].concat());
        let record = json(record);
        let (said, one) = (record["gather"].as_str().unwrap(), &record["systems"][0]);
        assert_eq!(said, how.get(1).copied().unwrap_or("virtual"));
        assert!(record.get("placement").is_none(), "of one process there is none");
        assert!(text.contains("gather") && one["gather"]["seconds"]["median"].as_f64().unwrap() > 0.0, "{text}");
        let share = one["gather"]["share"].as_f64().unwrap();
        assert!(0.0 < share && share < 1.0, "{share}");
        one["runs"][0]["iterations"][0]["sent"]["deltas"]["messages"].as_u64().unwrap()
    };
    let (before, within) = (first_messages(&[]), first_messages(&["--gather", "first"]));
    assert!(before < within, "{before} messages, {within} where accesses are gathered in it");
    fails(
        &["compare", "pagerank", &graph, "--systems", "essp", "--gather", "first"],
        2,
        &["--gather is for iterstore"],
    );
}

/// Links stay within one of four groups of pages, of which each process uses about one: rows that lie there are sent to few.
#[test]
fn placement_saves_bytes_and_changes_no_objective() {
    let place = Place::new();
    let link = |at: usize| {
        let page = |within: usize| 1000 * (at / 5000) + within % 500;
        format!("{} {}\n", page(at * 7), page(at * at + 3))
    };
    let graph = place.file("groups.txt", (0..20_000).map(link).collect::<String>());
    let (record, page) = (place.name("placement.json"), place.name("placement.html"));
    let run = |how: &[&str]| {
        let args = ["compare", "pagerank", &graph, "--systems", "iterstore", "--repeat", "1", "--iterations", "4"];
        let writes = ["--processes", "4", "-w", "1", "--json", &record, "--report", &page];
        done(&[&args[..], &writes, how].concat());
        let found = json(&record);
        assert_eq!((&found["gather"], &found["placement"]), (&"virtual".into(), &how.is_empty().into()));
        let said = if how.is_empty() { "where they are used most" } else { "where their numbers say" };
        assert!(std::fs::read_to_string(&page).unwrap().contains(said), "no {said}");
        let system = &found["systems"][0];
        [&system["objective"], &system["sent_bytes"]].map(|one| one["median"].as_f64().unwrap())
    };
    let ([placed, placed_bytes], [not, not_bytes]) = (run(&[]), run(&["--no-placement"]));
    assert!((placed / not - 1.0).abs() < 1e-9, "{placed} with placement, {not} without");
    assert!(1.3 * placed_bytes < not_bytes, "{placed_bytes} bytes with placement, {not_bytes} without");
    let args = ["compare", "pagerank", &graph, "--no-placement", "--systems"];
    fails(&[&args[..], &["essp"]].concat(), 2, &["--no-placement is for iterstore"]);
    fails(&[&args[..], &["iterstore"]].concat(), 2, &["--no-placement is between processes", "--processes"]);
}
