//! How a run found its settings: every trial, and the command that does without them.

use super::plot::{escape, precise};
use super::subject::Subject;
use megagrid_training::record::{Trial, Tuning};

/// Makes the section; empty unless a run was tuned.
pub fn section(subjects: &[Subject<'_>]) -> String {
    subjects.iter().filter_map(|subject| subject.shown().tuning.as_ref()).map(of_run).collect()
}

fn of_run(tuning: &Tuning) -> String {
    let Tuning { seconds, searcher, command, most_branches, .. } = tuning;
    let told = format!(
        "<p>{} by {}, {seconds:.2} s beside the run's own; at most {most_branches} branches at a time. \
         A command for {}:</p><pre>{}</pre>",
        tuning.tried(),
        escape(searcher),
        tuning.of_command(),
        escape(command)
    );
    let stalled = stalled(tuning);
    let columns = ["branch", "search", "setting", "iterations", tuning.time.as_str(), "loss", "speed", "", ""];
    let head: String = columns.iter().map(|name| format!("<th>{}", escape(name))).collect();
    let rows: String = tuning.trials.iter().map(row).collect();
    format!("{told}{stalled}<div class=wide><table><thead><tr>{head}</thead><tbody>{rows}</tbody></table></div>")
}

/// Says where the error on test data stopped falling; nothing if it did nowhere.
fn stalled(tuning: &Tuning) -> String {
    let after: Vec<String> = tuning.stalled.iter().map(|stalled| stalled.after.to_string()).collect();
    match after.as_slice() {
        [] => String::new(),
        [one] => format!("<p>The error on test data fell no further at iteration {one}."),
        [before @ .., last] => {
            format!("<p>The error on test data fell no further at iterations {} and {last}.", before.join(", "))
        }
    }
}

fn row(trial: &Trial) -> String {
    let loss = trial.loss.map_or_else(|| "—".to_owned(), precise);
    let cells = [
        trial.branch.to_string(),
        trial.search.to_string(),
        escape(&trial.setting),
        trial.iterations.to_string(),
        precise(trial.time),
        loss,
        precise(trial.speed),
        escape(&trial.label),
        if trial.chosen { "chosen".to_owned() } else { String::new() },
    ];
    format!("<tr>{}", cells.map(|cell| format!("<td>{cell}")).concat())
}
