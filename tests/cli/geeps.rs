//! `megagrid geeps`: what it trains, the same at any budget; its plan; and what it refuses.

mod checkpoints;

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::{Place, done, fails, json};

/// Samples of three classes, whose labels are 2, 5 and 9: a class has large values in features of its own.
fn samples(place: &Place) -> String {
    let mut text = String::new();
    for sample in 0..90_u32 {
        let class = sample % 3;
        let wave = |n: u32| (f64::from(n) * 0.7).sin() * 0.2;
        let own = 1.0 + wave(sample);
        let label = [2, 5, 9][class as usize];
        writeln!(text, "{label} {}:{own:.3} {}:{:.3}", 1 + class, 4 + sample % 4, 0.3 + wave(sample + 5)).unwrap();
    }
    place.file("classes.svm", text)
}

fn record(place: &Place, args: &[&str]) -> Value {
    let file = place.name("run.json");
    let text = done(&[&["geeps"], args, &["--json", &file]].concat());
    assert!(text.contains("device memory of a worker"), "{text}");
    json(file)
}

/// Objective and metrics of all epochs, without what depends on the budget.
fn found(record: &Value) -> Vec<(Value, Value)> {
    let iterations = record["iterations"].as_array().unwrap();
    iterations.iter().map(|one| (one["objective"].clone(), one["metrics"]["loss"].clone())).collect()
}

#[test]
fn classes_are_learned() {
    let place = Place::new();
    let samples = samples(&place);
    for (command, more) in [("mlr", vec![]), ("mlp", vec!["--hidden", "16,8", "--optimizer", "adagrad"])] {
        let args = [&[command, &samples, "--batch", "15", "--epochs", "40", "--workers", "2"][..], &more].concat();
        let record = record(&place, &args);
        assert_eq!(record["command"], format!("geeps {command}"));
        assert_eq!(record["iterations"].as_array().unwrap().len(), 40);
        assert_eq!(record["input"]["left"], 90);
        assert_eq!(record["input"]["right"], 7);
        assert!(record["result"]["metrics"]["accuracy"].as_f64().unwrap() > 0.95, "{}", record["result"]);
        assert!(record["config"]["plan"]["resident"].as_u64().unwrap() > 0);
        assert_eq!(record["staleness"].as_object().unwrap().keys().collect::<Vec<_>>(), ["-1"]);
    }
}

#[test]
fn mini_batches_are_as_large_as_there_are_samples_for() {
    let place = Place::new();
    let samples = samples(&place);
    for (workers, batch) in [("1", 90), ("4", 22)] {
        let record = record(&place, &["mlr", &samples, "--epochs", "1", "-w", workers]);
        assert_eq!(record["config"]["batch"], batch);
    }
    let record = record(&place, &["mf", &place.ratings(), "--epochs", "1"]);
    assert_eq!(record["config"]["batch"], 128);
}

#[test]
fn a_small_budget_trains_the_same_and_moves_what_the_plan_says() {
    let place = Place::new();
    let samples = samples(&place);
    let args = ["mlp", &samples, "--hidden", "32", "--batch", "30", "--epochs", "3"];
    let all = record(&place, &args);
    let least = all["config"]["plan"]["least_budget"].to_string();
    let small = record(&place, &[&args[..], &["--budget", &least]].concat());
    assert_eq!(found(&all), found(&small));
    assert!(small["machine"]["memory_bytes"].as_u64().unwrap() <= least.parse().unwrap());
    let plan = json_of(&done(&[&["geeps", "plan"], &args[..], &["--budget", &least, "--json", "-"]].concat()));
    let moved: u64 = plan["iteration"].as_object().unwrap().values().map(|bytes| bytes.as_u64().unwrap()).sum();
    // 90 samples are three mini-batches, of three epochs; an epoch has what was fetched ahead for the next one.
    let epochs = small["iterations"].as_array().unwrap();
    let megabytes: f64 = epochs.iter().map(|epoch| epoch["metrics"]["device_mb"].as_f64().unwrap()).sum();
    assert_eq!((megabytes * 1e6).round(), 9.0 * moved as f64);
    let text = done(&[&["geeps", "plan"], &args[..], &["--budget", &least]].concat());
    let of = |moved: &Value| moved.as_object().unwrap().values().map(|bytes| bytes.as_u64().unwrap()).sum::<u64>();
    let clocks = plan["clocks"].as_array().unwrap();
    assert_eq!(clocks.iter().map(|clock| of(&clock["moved"])).sum::<u64>(), moved, "all that moves is some clock's");
    let pinned = plan["items"].as_array().unwrap().iter().filter(|item| item["is_pinned"] == true);
    let pinned: u64 = pinned.map(|item| item["bytes"].as_u64().unwrap()).sum();
    assert_eq!(pinned, plan["local"][0].as_u64().unwrap() + plan["tables"][0].as_u64().unwrap());
    for part in ["budget", "local data to the device", "held at a time", "read of weights 2", "comes and goes"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn ratings_are_factorized_under_every_consistency() {
    let place = Place::new();
    let ratings = place.ratings();
    for consistency in [&["bsp"][..], &["ssp", "--slack", "2"], &["async"]] {
        let args = ["mf", &ratings, "--dims", "6", "--step", "0.05", "--batch", "64", "--epochs", "60", "-w", "2"];
        let record = record(&place, &[&args[..], &["--consistency"], consistency].concat());
        let rmse = |at: usize| record["iterations"][at]["metrics"]["train_rmse"].as_f64().unwrap();
        assert!(rmse(59) < 0.5 * rmse(0), "{consistency:?}: {} to {}", rmse(0), rmse(59));
    }
}

#[test]
fn a_modelled_device_trains_the_same_and_has_times_of_its_own() {
    let place = Place::new();
    let samples = samples(&place);
    let args = ["mlp", &samples, "--batch", "15", "--epochs", "2", "--device", "modelled"];
    let [slow, fast] = [["--copy", "1e6"], ["--copy", "1e9"]].map(|rate| record(&place, &[&args[..], &rate].concat()));
    assert_eq!(found(&slow), found(&fast));
    let seconds = |record: &Value| record["iterations"][1]["seconds"].as_f64().unwrap();
    assert!(seconds(&slow) > 2.0 * seconds(&fast), "{} and {}", seconds(&slow), seconds(&fast));
    let again = record(&place, &[&args[..], &["--copy", "1e6"]].concat());
    assert_eq!(seconds(&slow), seconds(&again), "modelled time does not depend on this machine");
}

/// Beside epochs is what measuring takes: what comes before the first one is a part of the plan.
#[test]
fn setup_is_no_part_of_evaluations() {
    let place = Place::new();
    let samples = samples(&place);
    let record = record(&place, &["mlp", &samples, "--hidden", "64", "--batch", "15", "--epochs", "8", "-w", "2"]);
    let iterations = record["iterations"].as_array().unwrap();
    let beside: Vec<f64> = iterations.iter().map(|one| one["evaluate_seconds"].as_f64().unwrap()).collect();
    let mut others = beside[1..].to_vec();
    others.sort_by(f64::total_cmp);
    assert!(beside[0] <= others[3], "the first has as much as the median of the others at most: {beside:?}");
    let sum = record["phases"]["evaluate"].as_f64().unwrap();
    assert!((sum - beside.iter().sum::<f64>()).abs() <= 1e-9 * sum, "{sum}, and each {beside:?}");
}

/// Records of several runs are the same, wherever they are written and whatever is shown.
#[cfg(target_os = "linux")]
#[test]
fn a_record_has_no_options_of_outputs() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let (samples, file) = (samples(&place), place.path("").join(std::ffi::OsStr::from_bytes(b"\xff.json")));
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(["geeps", "mlr", &samples, "--epochs", "1", "-q", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let config = record["config"].as_object().unwrap();
    assert!(["json", "report", "quiet"].iter().all(|name| !config.contains_key(*name)), "{config:?}");
    assert_eq!(config["epochs"], 1);
}

#[cfg(not(feature = "gpu"))]
#[test]
fn a_gpu_needs_its_feature() {
    let place = Place::new();
    let samples = samples(&place);
    fails(&["geeps", "mlr", &samples, "--device", "gpu"], 2, &["--device gpu goes with", "--features gpu"]);
}

#[cfg(feature = "gpu")]
#[test]
fn a_gpu_trains_nearly_the_same() {
    let place = Place::new();
    let samples = samples(&place);
    let args = ["mlp", &samples, "--batch", "15", "--epochs", "3", "-w", "2"];
    let [cpu, gpu] = ["cpu", "gpu"].map(|device| record(&place, &[&args[..], &["--device", device]].concat()));
    let objective = |record: &Value| record["result"]["objective"].as_f64().unwrap();
    assert!((objective(&cpu) - objective(&gpu)).abs() < 1e-5, "{} and {}", objective(&cpu), objective(&gpu));
    assert_eq!(cpu["machine"]["vector"], "cpu");
    assert_ne!(gpu["machine"]["vector"], "cpu");
}

#[cfg(feature = "gpu")]
#[test]
fn without_a_gpu_it_is_said_what_to_install() {
    let place = Place::new();
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(["geeps", "mlr", &samples(&place), "--batch", "15", "--device", "gpu"])
        // No driver, whatever is installed.
        .env("VK_DRIVER_FILES", place.path("nothing"))
        .env("VK_ICD_FILENAMES", place.path("nothing"))
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("there is no GPU with Vulkan") && message.contains("mesa-vulkan-drivers"), "{message}");
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    let samples = samples(&place);
    fails(&["geeps", "mlr", &samples, "--slack", "1"], 2, &["--slack goes with --consistency ssp"]);
    fails(&["geeps", "mlr", &samples, "--copy", "1e9"], 2, &["--copy goes with --device modelled"]);
    fails(&["geeps", "mlr", &samples, "--batch", "91"], 2, &["batch is 91; expected 1 to 90"]);
    fails(&["geeps", "mlr", &samples, "--workers", "100"], 2, &["workers is 100", "number of samples, 90"]);
    for hidden in ["18446744073709551615", "3000000000"] {
        fails(
            &["geeps", "mlp", &samples, "--batch", "9", "--hidden", hidden],
            2,
            &["hidden is", hidden, "weights at most"],
        );
    }
    let epochs = ["geeps", "mlr", &samples, "--batch", "45", "--epochs", "9223372036854775808"];
    fails(&epochs, 2, &["epochs is 9223372036854775808"]);
    let last = ["geeps", "mlp", &samples, "--batch", "90", "--epochs", "1", "--step", "3e38"];
    fails(&last, 1, &["the objective is", "after epoch 1"]);
    fails(&["geeps", "mlr", &samples, "--budget", "3MB"], 2, &["expected bytes, such as"]);
    let report = ["geeps", "plan", "mlr", &samples, "--batch", "9", "--report", &place.name("page.html")];
    fails(&report, 2, &["--report is not for plan"]);
    let small = ["geeps", "mlp", &samples, "--batch", "30", "--budget", "1KiB"];
    fails(&small, 1, &["a budget of 1024 bytes lacks ", " for layer ", "weights 1", "--budget"]);
    let steep = ["geeps", "mlp", &samples, "--batch", "30", "--step", "1e35"];
    fails(&steep, 1, &["the loss became", "epoch 1, iteration", "try a smaller --step"]);
    let one_class = place.file("one.svm", "1 1:2\n1 2:1\n");
    fails(&["geeps", "mlr", &one_class, "--batch", "1"], 2, &["number of classes is 1; expected 2 and more"]);
    let word = place.file("word.svm", "1 1:2\nnan 2:1\n");
    fails(&["geeps", "mlr", &word], 1, &["word.svm:2: label", "\"nan\"", "a number or the name of a class"]);
    assert!(!place.path("page.html").exists());
}

#[test]
fn processes_train_as_one() {
    let place = Place::new();
    let samples = samples(&place);
    let args = ["geeps", "mlp", &samples, "--batch", "15", "--epochs", "3", "--optimizer", "adagrad"];
    let of = |name: &str, before: &[&str], workers: &str| {
        let file = place.name(name);
        done(&[before, &args[..], &["-w", workers, "--json", &file]].concat());
        json(file)
    };
    let one = of("one.json", &[], "4");
    let two = of("two.json", &["launch", "-n", "2", "--"], "2");
    assert_eq!(found(&one), found(&two));
    assert_eq!((&one["config"]["processes"], &two["config"]["processes"]), (&1.into(), &2.into()));
    assert_eq!(two["machine"]["workers"], 4);
    let links = &two["machine"]["links"];
    assert!(links[0][1].as_u64() > Some(0) && links[1][0].as_u64() > Some(0) && links[0][0] == 0, "{links}");
    let plan = ["launch", "-n", "2", "--", "geeps", "plan", "mlr", &samples];
    fails(&plan, 2, &["geeps plan trains nothing"]);
}

/// Whenever a process is killed, while it reads, in the first iteration or later.
#[cfg(target_os = "linux")]
#[test]
fn six_processes_that_are_killed_end_the_others() {
    use std::time::{Duration, Instant};

    use crate::launched::{end, launch, process, send};

    let place = Place::new();
    let samples = samples(&place);
    let args = ["geeps", "mlp", &samples, "--batch", "15", "-q", "--epochs", "100000000", "-w", "1"];
    for kill in 0..6 {
        let how =
            [&["--consistency", "bsp"][..], &["--consistency", "ssp", "--slack", "2"], &["--consistency", "async"]];
        let launched = launch(&["-n", "3"], &[&args, how[kill % 3]].concat());
        let [killed, others @ ..] = [kill % 3, (kill + 1) % 3, (kill + 2) % 3].map(|at| process(&launched, at, None));
        std::thread::sleep(Duration::from_millis(60 * kill as u64));
        send("-KILL", killed);
        let begin = Instant::now();
        let (code, messages) = end(launched);
        assert_eq!(code, Some(1), "{messages}");
        assert!(begin.elapsed() < Duration::from_secs(10), "kill {kill} took {:?}: {messages}", begin.elapsed());
        assert!(others.iter().all(|id| !fs::exists(format!("/proc/{id}")).unwrap()), "{messages}");
        assert!(messages.contains("killed by signal 9"), "{messages}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_lost_ends_all_and_a_restart_goes_on() {
    use crate::launched::{end, launch, process, send, wait};

    let place = Place::new();
    let (samples, saved) = (samples(&place), place.name("saved"));
    let args = ["geeps", "mlp", &samples, "--batch", "15", "--optimizer", "adagrad", "-q"];
    let endless = ["--epochs", "100000000", "--checkpoint", &saved, "--checkpoint-every", "1", "-w", "1"];
    let newest = || {
        let entries = fs::read_dir(&saved).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("epoch-")?.parse::<u64>().ok()).max()
    };
    let launched = launch(&["-n", "2", "--restarts", "1"], &[&args[..], &endless].concat());
    let (first, other) = (process(&launched, 1, None), process(&launched, 0, None));
    wait(|| newest().is_some());
    send("-KILL", first);
    let second = process(&launched, 1, Some(first));
    let arguments = fs::read_to_string(format!("/proc/{second}/cmdline")).unwrap();
    assert!(arguments.contains(&format!("--resume\0{saved}")), "{arguments}");
    assert!(!fs::exists(format!("/proc/{other}")).unwrap());
    let before = newest();
    wait(|| newest() > before);
    send("-KILL", second);
    let (code, messages) = end(launched);
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("restart 1 of 1 from the last checkpoint in "), "{messages}");
    assert!(messages.trim_end().ends_with("killed by signal 9; all processes have ended"), "{messages}");
    // One process with as many workers goes on to what it would have come to by itself.
    let epochs = (newest().unwrap() + 1).to_string();
    let to_end = |name: &str, more: &[&str]| {
        let file = place.name(name);
        done(&[&args[..], &["--epochs", &epochs, "-w", "2", "--json", &file], more].concat());
        found(&json(file)).pop()
    };
    assert_eq!(to_end("resumed.json", &["--resume", &saved]), to_end("whole.json", &[]));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_of_several_processes_leaves_a_checkpoint() {
    use crate::launched::{end, launch, process, send, wait};

    let place = Place::new();
    let (samples, saved) = (samples(&place), place.name("saved"));
    let args = ["geeps", "mlr", &samples, "--batch", "15"];
    let endless = ["--epochs", "100000000", "--checkpoint", &saved, "--checkpoint-every", "1", "-w", "1", "-q"];
    let launched = launch(&["-n", "2"], &[&args[..], &endless].concat());
    let processes = [0, 1].map(|number| process(&launched, number, None));
    wait(|| {
        fs::read_dir(&saved)
            .is_ok_and(|entries| entries.flatten().any(|entry| entry.path().join("state.json").is_file()))
    });
    send("-INT", launched.id());
    let (code, messages) = end(launched);
    assert_eq!(code, Some(130), "{messages}");
    let said = |what: &str| messages.matches(what).count();
    assert_eq!((said("interrupted after iteration"), said("continue with --resume")), (1, 1), "{messages}");
    assert!(processes.iter().all(|id| !fs::exists(format!("/proc/{id}")).unwrap()));
    let newest = fs::read_dir(&saved)
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("epoch-")?.parse::<u64>().ok());
    let more = (newest.max().unwrap() + 2).to_string();
    let rest = record(&place, &[&args[1..], &["-w", "2", "--resume", &saved, "--epochs", &more]].concat());
    assert_eq!(rest["iterations"].as_array().unwrap().len(), 2);
}
