//! Wrong usage: exit 2 and a message that says what would be right. Help that teaches.

use crate::{Place, done, fails, run};

#[test]
fn options_out_of_range_are_refused() {
    let place = Place::new();
    let (ratings, graph) = (place.ratings(), place.graph());
    let mf = |option: &str, value: &str, parts: &[&str]| fails(&["mf", &ratings, option, value], 2, parts);
    mf("--dims", "0", &["dims is 0; expected 1 to 4096"]);
    mf("--workers", "0", &["'0'", "--workers", "1..=4096"]);
    mf("--holdout", "1.2", &["holdout 1.2 is out of range"]);
    mf("--holdout", "0", &["holdout 0 is out of range"]);
    mf("--step", "-1", &["step is -1; expected a number above 0"]);
    mf("--step", "0", &["step is 0; expected a number above 0"]);
    mf("--lambda", "NaN", &["lambda is NaN"]);
    mf("--init-std", "0", &["init-std is 0"]);
    mf("--iterations", "0", &["--iterations"]);
    mf("--tolerance", "-1", &["tolerance is -1"]);
    mf("--batch", "0", &["--batch"]);
    mf("--work-per-clock", "0", &["work-per-clock is 0"]);
    mf("--work-per-clock", "1.5", &["work-per-clock is 1.5; expected a number above 0 and at most 1"]);
    mf("--vector", "mmx", &["vector level \"mmx\" is not one of this processor's"]);
    mf("--format", "xls", &["format \"xls\" is unknown"]);
    mf("--strategy", "metis", &["--strategy", "expected bicut"]);
    mf("--strategy", "hdrf", &["a plan is made from degrees", "megagrid partition --strategy hdrf"]);
    mf("--strategy", "random", &["regardless of their ends", "take bicut, grid, hybrid, mixed, auto"]);
    mf("--decay", "0.1", &["decay is not of adagrad", "--optimizer"]);
    mf("--momentum", "0.5", &["momentum is of --optimizer momentum, nesterov or adam"]);
    mf("--rho", "0.5", &["rho is of --optimizer rmsprop, adam or adadelta"]);
    mf("--optimizer", "newton", &["sgd, momentum, nesterov, rmsprop, adagrad, adam, adadelta"]);
    let with = |optimizer: &str, option: &str, value: &str, part: &str| {
        fails(&["mf", &ratings, "--optimizer", optimizer, option, value], 2, &[part]);
    };
    with("momentum", "--momentum", "1", "momentum is 1; expected 0 or a number above 0 and below 1");
    with("adam", "--rho", "-0.5", "rho is -0.5; expected 0 or a number above 0 and below 1");
    with("rmsprop", "--momentum", "0.5", "momentum is of --optimizer momentum, nesterov or adam");
    with("nesterov", "--rho", "0.5", "rho is of --optimizer rmsprop, adam or adadelta");
    let whole = ["mf", &ratings, "--gradient", "batch", "--optimizer", "adam", "--consistency", "ssp", "--slack", "1"];
    fails(&whole, 2, &["step by whole sums", "--gradient in-place"]);
    let pagerank = |option: &str, value: &str, parts: &[&str]| fails(&["pagerank", &graph, option, value], 2, parts);
    for damping in ["1.5", "0", "1", "NaN"] {
        pagerank("--damping", damping, &["damping is", "expected a number above 0 and below 1"]);
    }
    pagerank("--tolerance", "inf", &["tolerance is inf"]);
    pagerank("--work-per-clock", "0.5", &["work-per-clock is 0.5", "takes 1 only"]);
    pagerank("--workers", "-1", &["--workers", "1..=4096"]);
}

#[test]
fn slack_goes_with_ssp_and_essp() {
    let place = Place::new();
    let graph = place.graph();
    for model in ["bsp", "async"] {
        let args = ["pagerank", &graph, "--consistency", model, "--slack", "2"];
        fails(&args, 2, &["--slack goes with --consistency ssp or essp", model]);
    }
    for model in ["ssp", "essp"] {
        done(&["pagerank", &graph, "--consistency", model, "--slack", "2", "-q"]);
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let place = Place::new();
    let ratings = place.ratings();
    fails(&["mf", &ratings, "--test", &ratings, "--holdout", "0.1"], 2, &["cannot be used with"]);
    fails(&["mf", &ratings, "--batch", "9", "--work-per-clock", "0.5"], 2, &["cannot be used with"]);
    fails(&["mf", &ratings, "--checkpoint-every", "2"], 2, &["--checkpoint"]);
    fails(&["mf"], 2, &["INPUT"]);
    fails(&["fly"], 2, &["fly"]);
}

#[test]
fn options_without_effect_are_refused() {
    let place = Place::new();
    let (ratings, corpus) = (place.ratings(), place.file("posts.txt", "tea and rye\nrye and oats\n"));
    fails(&["demo", "--virtual-workers", "4"], 2, &["--virtual-workers is not for demo", "megagrid generate"]);
    fails(&["demo", "--cache", "caches"], 2, &["--cache is not for demo"]);
    for (command, refused) in
        [(&["demo"][..], "--cache"), (&["hits"], "--from"), (&["plan", "mf"], "--checkpoint-every")]
    {
        let help = done(&[command, &["--help"]].concat());
        assert!(!help.contains(&format!("{refused} <")) && help.contains("--workers <"), "{command:?} {help}");
    }
    let plan = ["plan", "mf", &ratings];
    for option in ["--model", "--json", "--report", "--checkpoint", "--resume", "--from"] {
        fails(&[&plan[..], &[option, &place.name("out")]].concat(), 2, &[option, "is not for plan"]);
    }
    for (option, value) in [("--virtual-workers", "4"), ("--inject", "delay:0.1")] {
        fails(&[&plan[..], &[option, value]].concat(), 2, &[option, "is not for plan"]);
    }
    fails(&["compare", "mf", &ratings, "--tolerance", "0.1"], 2, &["--tolerance", "runs all iterations"]);
    fails(&["tune", "mf", &ratings, "--virtual-workers", "4"], 2, &["--virtual-workers is not for tune"]);
    let launch = ["launch", "-n", "2", "--", "mf", &ratings, "--virtual-workers", "4"];
    fails(&launch, 2, &["--virtual-workers makes a cluster in one process"]);
    let lda = ["lda", &corpus, "--topics", "2"];
    fails(&[&lda[..], &["--prior", "fixed", "--optimize-every", "5"]].concat(), 2, &["optimize-every is for a prior"]);
    fails(&[&lda[..], &["--sampler", "mh", "--annealing", "5"]].concat(), 2, &["annealing is not for the sampler mh"]);
    fails(&["predict", "m", "s", "--quality", "--output", "o"], 2, &["cannot be used with"]);
    fails(&["topics", "m", "--documents", "d", "--output", "o", "-n", "5"], 2, &["cannot be used with"]);
    assert_eq!(place.listing(), ["posts.txt", "ratings.csv"]);
}

#[test]
fn every_command_has_help_with_an_example() {
    // The main options of each.
    let commands: [(&str, &[&str]); 26] = [
        ("demo", &["--algorithm", "--workers"]),
        ("pagerank", &["--damping", "--weights", "--undirected", "--restart", "--tolerance", "--model"]),
        ("mf", &["--dims", "--lambda", "--holdout", "--gradient", "--checkpoint"]),
        ("als", &["--dims", "--block", "--alpha", "--ratings-above", "--half-life", "--holdout-per-user", "--ranking"]),
        ("lda", &["--topics", "--prior", "--annealing", "--optimize-every", "--top-words", "--sampler"]),
        ("blockpg", &["--l1", "--positive", "--normalize", "--intercept", "--from"]),
        ("hits", &["--iterations", "--tolerance", "--model"]),
        ("compare", &["pagerank", "mf", "als", "lda", "blockpg"]),
        ("geeps", &["mlp", "mlr", "mf", "plan"]),
        ("tune", &["mf", "lda", "blockpg"]),
        ("update", &["NEW", "--remove", "--data", "--iterations", "--model"]),
        ("launch", &["-n", "--hostfile", "--restarts"]),
        ("generate", &["rmat", "lattice", "ratings", "corpus", "clicks"]),
        ("inspect", &["--quick", "--json", "--as"]),
        ("convert", &["<OUTPUT>", "--as", "--positive"]),
        ("partition", &["--partitions", "--strategy"]),
        ("plan", &["--processes", "mf"]),
        ("view", &["<RECORDS>...", "--output"]),
        ("recommend", &["--number", "--exclude", "--users", "--all", "--fold-in", "--output", "--json"]),
        ("similar", &["--number", "--names", "--all", "--users", "--output", "--json"]),
        ("predict", &["--output", "--quality", "--no-clip", "--json"]),
        ("top", &["--number", "--json"]),
        ("topics", &["--number", "--documents", "--columns", "--output", "--json"]),
        ("serve", &["--bind", "--port", "--token-file", "--concurrency", "--watch", "--max-age", "--watch-every"]),
        ("completions", &["bash", "zsh", "fish"]),
        ("man", &["<DIRECTORY>"]),
    ];
    for (command, options) in commands {
        let help = done(&[command, "--help"]);
        assert!(help.contains(&format!("Usage: megagrid {command}")), "{help}");
        assert!(help.contains("Example"), "{help}");
        for option in options {
            assert!(help.contains(option), "no {option} in: {help}");
        }
    }
    let listed = done(&["--help"]);
    let listed = listed.lines().skip_while(|line| *line != "Commands:").skip(1);
    // What is further in goes on with a description.
    let listed =
        listed.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let listed: Vec<&str> = listed.filter(|name| !["", "help"].contains(name)).collect();
    assert_eq!(listed, commands.map(|(command, _)| command), "all commands are looked at");
    for (command, inner, options) in [
        ("compare", "mf", ["--systems", "--repeat", "--target"]),
        ("compare", "als", ["--systems", "--block", "--ratings-above"]),
        ("tune", "mf", ["--tune", "--searcher", "--trials"]),
        ("tune", "lda", ["--tune", "--budget", "--time"]),
        ("tune", "blockpg", ["--tune", "--no-retune", "--l1"]),
        ("plan", "pagerank", ["--processes", "--damping", "--workers"]),
        ("generate", "rmat", ["--scale", "--edge-factor", "--clean"]),
        ("generate", "lattice", ["--rows", "--columns", "--kept"]),
        ("generate", "ratings", ["--left", "--right", "--edges"]),
        ("generate", "corpus", ["--documents", "--vocabulary", "--topics"]),
        ("generate", "clicks", ["--samples", "--features", "--seed"]),
    ] {
        let help = done(&[command, inner, "--help"]);
        for shown in
            [&format!("Usage: megagrid {command} {inner}")[..], "[default: ", options[0], options[1], options[2]]
        {
            assert!(help.contains(shown), "no {shown} in: {help}");
        }
    }
    let help = done(&["mf", "--help"]);
    for shown in ["--dims <K>", "--lambda", "[default: 0.", "[default: bsp]", "cores of the machine", "in-place"] {
        assert!(help.contains(shown), "no {shown} in: {help}");
    }
    assert!(done(&["--version"]).starts_with("megagrid "));
    assert_eq!(run(&[]).code, Some(2));
}

#[test]
fn a_plan_is_printed_without_running() {
    let place = Place::new();
    for text in [done(&["plan", "mf", &place.ratings(), "-w", "2"]), done(&["plan", "pagerank", &place.graph()])] {
        assert!(text.contains("memory"), "{text}");
    }
    fails(&["plan", "mf", &place.ratings(), "--dims", "0"], 2, &["dims is 0"]);
}

#[test]
fn shells_and_manuals_know_every_command() {
    for (shell, shown) in [("bash", "--fold-in"), ("zsh", "--fold-in"), ("fish", "fold-in")] {
        let script = done(&["completions", shell]);
        assert!(script.contains("megagrid") && script.contains(shown), "{shell}");
    }
    fails(&["completions", "tcsh"], 2, &["tcsh", "bash"]);
    let place = Place::new();
    let pages = place.name("pages");
    done(&["man", &pages]);
    let names = std::fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    for page in ["megagrid.1", "megagrid-mf.1", "megagrid-recommend.1", "megagrid-generate-rmat.1"] {
        assert!(names.iter().any(|name| name == page), "no {page} among {names:?}");
    }
    fails(&["man", &pages], 1, &["exists already"]);
}
