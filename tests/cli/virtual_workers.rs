//! Training by virtual workers.

use crate::{Place, done, fails, json};

#[test]
fn a_run_is_reproduced_from_its_calibration() {
    let place = Place::new();
    let (ratings, costs) = (place.ratings(), place.name("costs.json"));
    let train = |record: &str| {
        let record = place.name(record);
        let options = ["--virtual-workers", "4", "--link", "100Mbit,50us", "--jitter", "0.1", "--calibration", &costs];
        let slack = ["--consistency", "ssp", "--slack", "2", "--inject", "delay:0.001"];
        done(&[&["mf", &ratings, "--iterations", "3", "-q", "--json", &record], &options[..], &slack[..]].concat());
        json(&record)
    };
    let (one, other) = (train("one.json"), train("other.json"));
    for iteration in 0..3 {
        for value in ["seconds", "compute_seconds", "wait_seconds", "objective", "sent_bytes"] {
            assert_eq!(one["iterations"][iteration][value], other["iterations"][iteration][value], "{value}");
        }
    }
    assert_eq!(one["staleness"], other["staleness"]);
    assert_eq!(one["config"]["virtual_model"]["link"], "100Mbit,50us,5us");
    assert_eq!(one["config"]["inject"], "delay:0.001,1");
    assert_eq!(one["config"]["virtual_workers"], 4);
}

#[test]
fn virtual_workers_end_where_processes_do() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let options = ["mf", &ratings, "--iterations", "3", "-q", "--json", &record];
    done(&[&options[..], &["--virtual-workers", "3", "--clock-cost", "1"]].concat());
    let found = json(&record)["result"]["objective"].clone();
    done(&[&["launch", "-n", "3", "--"], &options[..], &["-w", "1"]].concat());
    assert_eq!(found, json(&record)["result"]["objective"]);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let place = Place::new();
    let ratings = place.ratings();
    for (options, message) in [
        (&["--virtual-workers", "3", "-w", "2"][..], "leave out --workers"),
        (&["--virtual-workers", "3", "--link", "fast"], "\"fast\" is no link"),
        (&["--virtual-workers", "3", "--jitter", "2"], "jitter is 2"),
        (&["--inject", "sleep:1"], "\"sleep:1\" is no injection"),
        (&["--link", "1Gbit,1us"], "--virtual-workers"),
    ] {
        fails(&[&["mf", &ratings], options].concat(), 2, &[message]);
    }
    fails(&["mf", &place.name("none"), "--virtual-workers", "3"], 1, &["none", "No such file"]);
}
