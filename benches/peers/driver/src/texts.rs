//! Corpora and samples for the peers in Python: text that Megagrid reads too, brought into one form by `prepare.py`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::Programs;
use crate::inputs::once;
use crate::process::run;

/// Where an input comes from.
pub enum Source {
    /// The arguments of `megagrid generate`: what to make, and the options that follow the file.
    Generated(&'static str, &'static [&'static str]),
    /// A file in the folder of real data sets.
    Real(&'static str),
}

/// One input of this harness.
pub struct Text {
    /// As `--inputs` names it; the prepared file in the work folder has this name too.
    pub name: &'static str,
    pub source: Source,
    /// What `prepare.py` does with it.
    pub action: &'static str,
}

/// The first three numbers of a UCI bag of words.
pub struct CorpusShape {
    pub documents: u64,
    pub words: u64,
}

/// The prepared file, made at the first call; `None`, and a word about it, where the real data set is not there.
pub fn prepare(programs: &Programs, text: &Text) -> Result<Option<PathBuf>> {
    let python = programs.python.as_deref().context("no Python")?;
    let origin = match text.source {
        Source::Generated(what, arguments) => {
            let origin = programs.work.join(format!("generated-{}", text.name));
            once(&origin, |out| {
                let mut command = Command::new(&programs.megagrid);
                run(command.args(["generate", what]).arg(out).args(arguments).args(["--seed", "1"])).map(drop)
            })?;
            origin
        }
        Source::Real(file) => programs.data.join(file),
    };
    if !origin.exists() {
        eprintln!("{} is not there: {} is left out; --data names the folder", origin.display(), text.name);
        return Ok(None);
    }
    // In a folder of its own: a generator's vocabulary lies beside what it made, and is not that of the prepared words.
    let folder = programs.work.join("prepared");
    std::fs::create_dir_all(&folder)?;
    let prepared = folder.join(text.name);
    once(&prepared, |out| {
        run(Command::new(python).arg(&programs.prepare).arg(text.action).arg(origin).arg(out)).map(drop)
    })?;
    Ok(Some(prepared))
}

/// Reads the header of a UCI bag of words.
pub fn corpus_shape(path: &Path) -> Result<CorpusShape> {
    let mut lines = BufReader::new(File::open(path)?).lines();
    let mut next = || -> Result<u64> { Ok(lines.next().context("the header is cut off")??.trim().parse()?) };
    let shape = (|| Ok::<_, anyhow::Error>(CorpusShape { documents: next()?, words: next()? }))();
    shape.with_context(|| format!("{} is not a UCI bag of words", path.display()))
}
