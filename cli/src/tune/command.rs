//! The command line that trains with the setting that was found.

use megagrid_tuner::Setting;

use super::Known;

/// Options of the tuner, which a training command does not take; whether a value follows.
const OWN: [(&str, bool); 6] = [
    ("--tune", true),
    ("--searcher", true),
    ("--budget", true),
    ("--trials", true),
    ("--time", true),
    ("--no-retune", false),
];

/// Returns the command line that trains with a setting: this one's without what tunes.
pub fn without_trials(known: &Known, setting: &Setting) -> String {
    let chosen = options_of(setting);
    let is_set = |name: &str| chosen.iter().any(|(option, _)| option == name);
    let mut words = vec!["megagrid".to_owned(), known.algorithm.to_owned()];
    let mut rest = std::env::args().skip(1).skip_while(|word| word != known.algorithm).skip(1);
    while let Some(word) = rest.next() {
        let (name, inline) = word.split_once('=').map_or((word.as_str(), false), |(name, _)| (name, true));
        let own = OWN.iter().find(|(option, _)| *option == name).map(|(_, value)| *value);
        match own.or(is_set(name).then_some(true)) {
            Some(has_value) if has_value && !inline => drop(rest.next()),
            Some(_) => {}
            None => words.push(quoted(&word)),
        }
    }
    for (option, value) in chosen {
        words.push(option);
        words.push(quoted(&value));
    }
    words.join(" ")
}

/// Returns a setting as options of the training command.
fn options_of(setting: &Setting) -> Vec<(String, String)> {
    let mut options = Vec::new();
    for (name, value) in setting.iter() {
        match name {
            "slack" if value.number() == Some(0.0) => {}
            "slack" => options
                .extend([("--consistency".to_owned(), "ssp".to_owned()), ("--slack".to_owned(), value.to_string())]),
            _ => options.push((format!("--{name}"), value.to_string())),
        }
    }
    options
}

fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
