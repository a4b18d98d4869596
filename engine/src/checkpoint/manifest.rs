//! The manifest of a checkpoint: what it is a checkpoint of, and the checksums of its files and of itself.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use megagrid_partition::ShardId;
use megagrid_stages::{Program, Store};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::file::{DAMAGED, FileEntry, Ranges, VERSION, io};
use super::slices;
use crate::grid::hold;
use crate::run::all_gather;
use crate::{Engine, Error};

pub const MANIFEST: &str = "checkpoint.json";
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub iterations: u64,
    /// Workers that wrote it; need not match.
    pub workers: usize,
    /// What hot loops were compiled for; need not match.
    pub level: String,
    pub run: Fingerprint,
    pub files: Vec<FileEntry>,
}

/// The file: the manifest with its version and its checksum around it.
#[derive(Serialize, Deserialize)]
struct Sealed<M> {
    version: u32,
    /// XXH3 of the manifest as compact JSON.
    xxh3: u64,
    manifest: M,
}

/// The part of the file that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Manifest {
    /// Writes the file and brings it to the disk.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(MANIFEST);
        let json = |error: serde_json::Error| Error::CheckpointIo { path: path.clone(), source: error.into() };
        let xxh3 = xxh3_64(&serde_json::to_vec(self).map_err(json)?);
        let text = serde_json::to_vec_pretty(&Sealed { version: VERSION, xxh3, manifest: self }).map_err(json)?;
        let mut file = File::create(&path).map_err(io(&path))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(io(&path))
    }

    /// Reads the file and compares it with its checksum.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(MANIFEST);
        let text = fs::read(&path).map_err(io(&path))?;
        let damaged = |problem| Error::Checkpoint { path: path.clone(), problem, advice: DAMAGED };
        let json = |error: serde_json::Error| damaged(error.to_string());
        let Versioned { version } = serde_json::from_slice(&text).map_err(json)?;
        if version != VERSION {
            return Err(Error::CheckpointVersion { path, found: version, expected: VERSION });
        }
        let sealed: Sealed<Self> = serde_json::from_slice(&text).map_err(json)?;
        let xxh3 = xxh3_64(&serde_json::to_vec(&sealed.manifest).map_err(json)?);
        if xxh3 != sealed.xxh3 {
            return Err(damaged(format!("checksum {xxh3} found, {} expected", sealed.xxh3)));
        }
        Ok(sealed.manifest)
    }

    /// Opens a file that is there, whole or in ranges.
    pub fn open(&self, name: &str, dir: &Path) -> Result<Ranges, Error> {
        let is_range =
            |found: &str| found.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let ranges: Vec<_> = self.files.iter().filter(|entry| is_range(&entry.name)).collect();
        if ranges.is_empty() {
            return Err(Error::Checkpoint {
                path: dir.join(MANIFEST),
                problem: format!("no entry of {name}, which the program needs"),
                advice: "use the version of the program that wrote it",
            });
        }
        Ok(Ranges::new(dir, &ranges))
    }
}

/// What a run must agree on with a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fingerprint {
    program: String,
    stages: Vec<String>,
    dims: usize,
    seed: u64,
    square: bool,
    /// Vertices left and right.
    vertices: [usize; 2],
    edges: u64,
    /// A digest of the data of all edges, of slices of their lengths, that does not depend on their order.
    edge_data: u64,
}

impl Fingerprint {
    /// Looks at a run. All processes call it.
    ///
    /// # Errors
    /// A lost process.
    pub fn of<P: Program>(engine: &Engine<P>) -> Result<Self, Error> {
        let plan = engine.plan();
        // What crosses between processes is no part of the program.
        let own = plan.stages.iter().filter(|stage| !stage.kind.crosses());
        Ok(Self {
            program: std::any::type_name::<P>().to_owned(),
            stages: own.map(|stage| format!("{} {:?}", stage.name, stage.kind)).collect(),
            dims: engine.run.dims,
            seed: engine.run.seed,
            square: plan.square,
            vertices: [0, 1].map(|side| engine.run.grid.orders[side].len()),
            edges: plan.edges,
            edge_data: edge_data(engine)?,
        })
    }

    /// Compares with a run; names the first difference.
    pub fn agrees(&self, run: &Self, dir: &Path, advice: &'static str) -> Result<(), Error> {
        let differs = self.values().into_iter().zip(run.values()).find(|(found, expected)| found != expected);
        differs.map_or(Ok(()), |((name, found), (_, expected))| {
            let problem = format!("a checkpoint of another run: {name} {found} found, {expected} expected");
            Err(Error::Checkpoint { path: dir.to_owned(), problem, advice })
        })
    }

    fn values(&self) -> [(&'static str, String); 8] {
        [
            ("program", self.program.clone()),
            ("stages", self.stages.join(", ")),
            ("dims", self.dims.to_string()),
            ("seed", self.seed.to_string()),
            ("square", self.square.to_string()),
            ("vertices", format!("{:?}", self.vertices)),
            ("edges", self.edges.to_string()),
            ("edge data", format!("digest {:x}", self.edge_data)),
        ]
    }
}

/// Joins the digests of the processes.
fn edge_data<P: Program>(engine: &Engine<P>) -> Result<u64, Error> {
    let here = if P::Edge::SHAPE.is_slice() { slices::digest(engine) } else { items_digest(engine) };
    let all = all_gather(engine.run.peers.as_deref(), vec![here])?;
    Ok(all.into_iter().fold(0, u64::wrapping_add))
}

fn items_digest<P: Program>(engine: &Engine<P>) -> u64 {
    let (grid, plan) = (&engine.run.grid, engine.plan());
    let mut sum = 0_u64;
    for (shard, column) in grid.columns.iter().enumerate() {
        let here = |block: &usize| plan.answers_for(ShardId(block % grid.left_shards), ShardId(shard));
        for block in (0..column.edges.blocks().len()).filter(here) {
            let items = hold(|| grid.data_of(shard).try_share(column.piece(block)));
            // Data without bytes say nothing that the number of edges does not.
            if size_of_val(&*items) > 0 {
                sum = items.iter().fold(sum, |sum, item| sum.wrapping_add(xxh3_64(bytemuck::bytes_of(item))));
            }
        }
    }
    sum
}
