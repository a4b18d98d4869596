//! Inputs, made once by `megagrid generate` and kept in the work folder. Text is what both sides
//! start from, so that no system sees other edges or ratings; peers get it in binary form.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::process::run;
use crate::{Options, Programs};

/// One graph in both forms.
pub struct GraphInput {
    /// Megagrid's cache, converted from the text.
    pub mgrid: PathBuf,
    /// `u32` pairs; the ids of the text, made dense in their own order.
    pub binary: PathBuf,
    pub num_vertices: u64,
    pub num_edges: u64,
}

/// One set of ratings, split.
pub struct RatingsInput {
    pub train_text: PathBuf,
    pub test_text: PathBuf,
    /// `(u32, u32, f32)` records with dense ids.
    pub train_binary: PathBuf,
    pub test_binary: PathBuf,
    pub num_train: u64,
}

/// An RMAT graph, duplicates and self loops removed, or a lattice.
pub fn graph(programs: &Programs, options: &Options) -> Result<GraphInput> {
    let (name, kind, settings) = match options.lattice {
        Some(side) => (format!("lattice-{side}"), "lattice", format!("--rows {side} --columns {side}")),
        None => (format!("rmat-{}", options.scale), "rmat", format!("--scale {} --clean", options.scale)),
    };
    let path = |ending: &str| programs.work.join(format!("{name}.{ending}"));
    let (text, binary, mgrid) = (path("txt"), path("bin"), path("mgrid"));
    once(&text, |out| {
        let mut command = Command::new(&programs.megagrid);
        command.args(["generate", kind]).arg(out).args(settings.split(' ')).args(["--seed", "1"]);
        run(&mut command).map(drop)
    })?;
    once(&mgrid, |out| run(Command::new(&programs.megagrid).arg("convert").arg(&text).arg(out)).map(drop))?;
    once(&binary, |out| write_dense_edges(&text, out))?;
    // The dense ids are 0..n, so their largest gives n.
    let edges = std::fs::read(&binary)?;
    let largest =
        edges.as_chunks::<4>().0.iter().map(|&id| u32::from_le_bytes(id)).max().context("the graph is empty")?;
    Ok(GraphInput { mgrid, binary, num_vertices: u64::from(largest) + 1, num_edges: edges.len() as u64 / 8 })
}

/// Vertices without an edge are not in the text. Leaving their ids out makes the peers faster too.
fn write_dense_edges(text: &Path, out: &Path) -> Result<()> {
    let mut edges = Vec::new();
    for_each_line(text, |line| {
        let mut ids = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (Some(Ok(source)), Some(Ok(target))) = (ids.next(), ids.next()) else {
            bail!("expected two ids, found {line:?}")
        };
        edges.push([source, target]);
        Ok(())
    })?;
    let largest = edges.iter().flatten().max().context("the graph is empty")?;
    let mut dense = vec![0u32; *largest as usize + 1];
    edges.iter().flatten().for_each(|&id| dense[id as usize] = 1);
    let mut next = 0;
    for id in &mut dense {
        let used = *id;
        *id = next;
        next += used;
    }
    let mut file = BufWriter::new(File::create(out)?);
    for id in edges.iter().flatten() {
        file.write_all(&dense[*id as usize].to_le_bytes())?;
    }
    Ok(file.flush()?)
}

/// Generated ratings, a tenth of them for testing. The first rating of every user and item stays
/// in the training part, so that no system has to score a row it never saw.
pub fn ratings(programs: &Programs, options: &Options) -> Result<RatingsInput> {
    let (name, [left, right, edges]) = if options.quick {
        ("ratings-quick", ["2000", "1000", "200000"])
    } else {
        ("ratings", ["48000", "17770", "10000000"])
    };
    let path = |ending: &str| programs.work.join(format!("{name}.{ending}"));
    let input = RatingsInput {
        train_text: path("train.txt"),
        test_text: path("test.txt"),
        train_binary: path("train.bin"),
        test_binary: path("test.bin"),
        num_train: 0,
    };
    let all = path("txt");
    once(&all, |out| {
        let mut command = Command::new(&programs.megagrid);
        let sizes = ["--left", left, "--right", right, "--edges", edges, "--seed", "1"];
        run(command.args(["generate", "ratings"]).arg(out).args(sizes)).map(drop)
    })?;
    // The training file in binary form is written last: when it is there, all four are.
    once(&input.train_binary, |out| split(&all, &input, out))?;
    let num_train = std::fs::metadata(&input.train_binary)?.len() / 12;
    Ok(RatingsInput { num_train, ..input })
}

fn split(all: &Path, input: &RatingsInput, train_binary: &Path) -> Result<()> {
    let is_test = choose_test(all)?;
    let create = |path: &Path| File::create(path).map(BufWriter::new).with_context(|| path.display().to_string());
    let mut text = [create(&input.train_text)?, create(&input.test_text)?];
    let mut binary = [create(train_binary)?, create(&input.test_binary)?];
    let (mut users, mut items) = (Dictionary::default(), Dictionary::default());
    let mut index = 0;
    for_each_line(all, |line| {
        let [user, item, value] = fields(line)?;
        let value: f32 = value.parse().with_context(|| format!("rating {value:?} is not a number"))?;
        let side = usize::from(is_test[index]);
        index += 1;
        writeln!(text[side], "{line}")?;
        binary[side].write_all(&users.id(user).to_le_bytes())?;
        binary[side].write_all(&items.id(item).to_le_bytes())?;
        Ok(binary[side].write_all(&value.to_le_bytes())?)
    })?;
    text.iter_mut().chain(&mut binary).try_for_each(|file| Ok(file.flush()?))
}

/// Selection sampling (Knuth, volume 2, algorithm S) of a tenth of the lines that may be held out.
fn choose_test(all: &Path) -> Result<Vec<bool>> {
    let (mut users, mut items) = (Dictionary::default(), Dictionary::default());
    let mut may_test = Vec::new();
    for_each_line(all, |line| {
        let [user, item, _] = fields(line)?;
        let known = (users.0.len(), items.0.len());
        let (user, item) = (users.id(user) as usize, items.id(item) as usize);
        may_test.push(user < known.0 && item < known.1);
        Ok(())
    })?;
    let mut wanted = may_test.len() / 10;
    let mut left = may_test.iter().filter(|&&may| may).count();
    ensure!(0 < wanted && wanted < left, "{} holds too few ratings to split", all.display());
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    for chosen in may_test.iter_mut().filter(|may| **may) {
        // xorshift64 (Marsaglia 2003)
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        *chosen = random % (left as u64) < wanted as u64;
        wanted -= usize::from(*chosen);
        left -= 1;
    }
    Ok(may_test)
}

/// Dense ids in order of first appearance.
#[derive(Default)]
struct Dictionary(HashMap<String, u32>);

impl Dictionary {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.0.get(name) {
            return id;
        }
        let id = self.0.len() as u32;
        self.0.insert(name.to_owned(), id);
        id
    }
}

fn fields(line: &str) -> Result<[&str; 3]> {
    let mut fields = line.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|field| !field.is_empty());
    match (fields.next(), fields.next(), fields.next()) {
        (Some(user), Some(item), Some(value)) => Ok([user, item, value]),
        _ => bail!("expected user, item and value, found {line:?}"),
    }
}

/// Calls `f` on every line that is not a comment.
fn for_each_line(path: &Path, mut f: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).with_context(|| path.display().to_string())?);
    let (mut line, mut number) = (String::new(), 0);
    while {
        line.clear();
        file.read_line(&mut line)?
    } > 0
    {
        number += 1;
        let line = line.trim_end();
        if !line.is_empty() && !line.starts_with('#') {
            f(line).with_context(|| format!("{}:{number}", path.display()))?;
        }
    }
    Ok(())
}

/// Makes a file unless it is there; a broken run leaves none behind.
pub fn once(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    eprintln!("making {}", path.display());
    let name = path.file_name().context("a path without a name")?.to_string_lossy();
    // The ending stays last, because `megagrid` goes by it.
    let partial = path.with_file_name(format!("partial-{name}"));
    if partial.exists() {
        std::fs::remove_file(&partial)?;
    }
    make(&partial)?;
    std::fs::rename(&partial, path).with_context(|| format!("{} was not written", partial.display()))
}
