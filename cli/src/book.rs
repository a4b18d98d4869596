//! The command lines of the book and of README are commands.

use std::fs;
use std::path::Path;

use clap::Parser;
use clap::error::ErrorKind;

use crate::Cli;

/// Returns the words from `megagrid` on of the lines of a page that are in code blocks, without comments.
fn commands(page: &str) -> Vec<Vec<String>> {
    let (mut found, mut fence) = (Vec::new(), None);
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language.trim().to_owned()) };
            continue;
        }
        if line.starts_with("    ") || fence.as_deref() == Some("sh") {
            let words = line.split(" #").next().unwrap_or_default().split_whitespace();
            let words: Vec<String> = words.skip_while(|word| *word != "megagrid").map(str::to_owned).collect();
            if !words.is_empty() {
                found.push(words);
            }
        }
    }
    found
}

/// Parses a command line, and the one that it launches.
fn parse(words: &[String]) -> Result<(), String> {
    match Cli::try_parse_from(words) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
        Err(error) => return Err(error.to_string()),
    }
    match words.iter().position(|word| word == "--") {
        Some(at) => parse(&[&["megagrid".to_owned()], &words[at + 1..]].concat()),
        None => Ok(()),
    }
}

#[test]
fn their_command_lines_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages = fs::read_dir(root.join("docs/book/src")).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for page in pages.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|end| end == "md")) {
        for words in commands(&fs::read_to_string(&page).unwrap()) {
            let parsed = parse(&words);
            assert!(parsed.is_ok(), "{}: {}: {}", page.display(), words.join(" "), parsed.unwrap_err());
            count += 1;
        }
    }
    assert!(count >= 40, "{count} command lines found");
}

#[test]
fn commands_of_pages_are_found() {
    let page = "    srun -n 2 megagrid mf a -w 2   # why\n\n```rust\nmegagrid no\n```\n```sh\nmegagrid top m\n```\nmegagrid no\n";
    assert_eq!(commands(page), [vec!["megagrid", "mf", "a", "-w", "2"], vec!["megagrid", "top", "m"]]);
}
