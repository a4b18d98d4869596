//! What can go wrong between a sequence and its result.

use std::path::PathBuf;

/// Why the engine refused, or ended, a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Processes would have nothing to do.
    #[error("there are {processes} processes, and the edges make {shards} shards to share out; use fewer processes")]
    TooManyProcesses {
        /// Processes.
        processes: usize,
        /// Shards whose edges belong together.
        shards: usize,
    },
    /// The machine has not enough memory.
    #[error("{0} bytes of memory are needed and could not be had; use a smaller model or a larger machine")]
    OutOfMemory(usize),
    /// The run would need more memory than the machine has.
    #[error(
        "the run needs about {} MB of memory and {} MB are available; use fewer dimensions, fewer edges or a larger machine",
        needed_bytes >> 20, available_bytes >> 20
    )]
    NotEnoughMemory {
        /// The estimate.
        needed_bytes: u64,
        /// What the system can give.
        available_bytes: u64,
    },
    /// More of something in a shard than positions of 32 bits reach.
    #[error(
        "a shard has {found} {of}, and at most 4294967295 fit; use more workers, whose shards are smaller, or fewer edges"
    )]
    ShardTooLarge {
        /// What: edges, ...
        of: &'static str,
        /// How many.
        found: usize,
    },
    /// A setting of a branch that would lay out the graph in another way.
    #[error("these settings need another grid; make an engine for them")]
    OtherGrid,
    /// A run within a run, or after one that failed before its threads could end.
    #[error("a run is under way, or one that failed has left threads behind; wait for its end, or make a new engine")]
    Running,
    /// A branch that is not alive.
    #[error("there is no branch {0}, or it was freed")]
    NoBranch(u64),
    /// A branch from before edges came or went.
    #[error(
        "the branch was forked before edges were appended or removed, and its rows are of other shards; fork after that"
    )]
    BranchOfOtherEdges,
    /// An edge to be removed that is not there.
    #[error(
        "there is no edge from left vertex {left} to right vertex {right}; nothing was removed; name edges that are there"
    )]
    NoEdge {
        /// Id of its left end.
        left: u32,
        /// Id of its right end.
        right: u32,
    },
    /// Edges come to, or go from, processes that are virtual.
    #[error(
        "a virtual cluster keeps the edges that it has; make an engine of all edges, or append on workers that are threads"
    )]
    VirtualEdges,
    /// Capacities of vertices that cannot hold what these have.
    #[error(
        "the {side} side has {vertices} vertices with room for what they have, and the capacities are of {found}, or smaller; \
             write those of all vertices after `.capacities`, none smaller than before"
    )]
    Capacities {
        /// Which side.
        side: megagrid_partition::Side,
        /// Its vertices.
        vertices: usize,
        /// How many capacities there are.
        found: usize,
    },
    /// A sequence that cannot run.
    #[error(transparent)]
    Sequence(#[from] megagrid_stages::Error),
    /// A store of entries without capacities.
    #[error(
        "a vertex type has a capacity for each vertex, and none were given; write `.capacities(left, right)` after the source"
    )]
    NoCapacities,
    /// Mini-batches of edges of different sizes, or within each other.
    #[error(
        "mini-batches of edges must have one size and not lie within each other; use batches of vertices inside or outside"
    )]
    EdgeBatches,
    /// Another process sent what this one does not expect.
    #[error(
        "process {0} sent rows that do not fit the plan; start all processes with the same data, options and version"
    )]
    Message(usize),
    /// What another process sent between iterations cannot be read.
    #[error("what a process sent cannot be read ({0}); start all processes with the same version")]
    Unreadable(#[from] bincode::Error),
    /// Changes in place that cannot be summed.
    #[error(
        "rows that are changed in place in every process must be numbers, so that changes can be summed; use slack 0 (bsp), or \
         an algorithm that keeps them so (--sampler dense)"
    )]
    NotAdditive,
    /// A rotation over right shards that begin with workers of other processes.
    #[error(
        "{0} changes both ends of an edge in a mini-batch of right vertices around another; with several processes \
         batch by edges or by left vertices"
    )]
    NestedRotation(String),
    /// A clock of several iterations, and a stage that needs what all workers did in each.
    #[error(
        "{0} applies sums or needs what all workers did in each iteration, or is the second stage to change both ends of edges, so that \
         a clock cannot have several iterations, which is for programs that change both ends in place; take a work per clock of 1 or less"
    )]
    PassesPerClock(String),
    /// A strategy that cuts vertices of both sides, and a stage that needs whole ones.
    #[error(
        "{stage} needs all edges of a vertex in one process, and the strategy {strategy} cuts vertices of both sides; take bicut, or \
         auto, which then is bicut"
    )]
    Strategy {
        /// The stage.
        stage: String,
        /// The strategy.
        strategy: &'static str,
    },
    /// A stage on all edges of a vertex beside one on single edges, with several processes.
    #[error(
        "{0} visits vertices with the data of all their edges beside a stage that runs on single edges, which with several \
         processes are in two of them; use one process, or leave one of the two out"
    )]
    EdgesOfProcesses(String),
    /// A stage that may change what edges carry, where edges are in the processes of both their ends.
    #[error(
        "{0} may change what edges carry; stages beside it run at the other ends of edges, and with several processes those would not \
         see it; use one process, or, if it only reads, take edge: &E, or set CHANGES_EDGES to false"
    )]
    ChangedEdges(String),
    /// A checkpoint of a program that changes what edges carry, where that is not stored.
    #[error(
        "{0} may change what edges carry, and checkpoints hold that of slices only; let an edge carry a slice ([T]), keep what changes in \
         vertices, or, if the stage only reads, take edge: &E, or set CHANGES_EDGES to false"
    )]
    CheckpointOfEdges(String),
    /// A stage beside one that has all edges of a right vertex in one block.
    #[error(
        "{0} stands beside a stage that has all edges of a right vertex in one block (WHOLE): use one process, and read left \
         vertices or add to them, or let one worker change them (BY_ONE)"
    )]
    WholeColumns(String),
    /// Stages that want the edges of a block in different orders.
    #[error(
        "{shuffled} changes both ends of an edge and gets edges in random order, and {grouped} asks for them grouped; \
         set GROUPED on both"
    )]
    EdgeOrder {
        /// The stage that gets edges in random order.
        shuffled: String,
        /// The stage that asks for groups.
        grouped: String,
    },
    /// An Exchange or a Gather that changes vertices of a square graph in place, or adds to both ends, which could be one row.
    #[error(
        "{0} would change vertices of a square graph in place, as a gather does too, or add to both ends of an edge, which may be one \
         vertex; read one end and add to the other, and change vertices in an apply; of an undirected graph `Edges::undirected` has each \
         edge both ways"
    )]
    SquareUpdate(String),
    /// Both sides index the same vertices, but the graph does not say so, or the other way round.
    #[error("the program runs on a {expected} graph and the input is {found}; {advice}")]
    Squareness {
        /// What the program needs.
        expected: &'static str,
        /// What the input is.
        found: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A setting out of range.
    #[error("{name} is {found}; expected {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// What looked at a run between iterations failed, and ended it.
    #[error(transparent)]
    Stopped(Box<dyn std::error::Error + Send + Sync>),
    /// The edges could not be read.
    #[error("reading edges: {0}")]
    Edges(#[from] std::io::Error),
    /// A checkpoint could not be written or read.
    #[error("{}: {source}", path.display())]
    CheckpointIo {
        /// Which file or directory.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A checkpoint of another version of the format.
    #[error(
        "{}: version {found} of the checkpoint format; expected {expected}: use the version of the program that wrote it",
        path.display()
    )]
    CheckpointVersion {
        /// Which manifest.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that is read and written.
        expected: u32,
    },
    /// A checkpoint that cannot be used, or a directory where none can be written.
    #[error("{}: {problem}; {advice}", path.display())]
    Checkpoint {
        /// Which file or directory.
        path: PathBuf,
        /// What was found, and what was expected.
        problem: String,
        /// What to do.
        advice: &'static str,
    },
    /// A stage function panicked.
    #[error("worker {worker} panicked at clock {clock} in stage {stage}: {message}")]
    WorkerPanicked {
        /// Which worker.
        worker: usize,
        /// When.
        clock: u64,
        /// Where.
        stage: String,
        /// What it said.
        message: String,
    },
    /// A worker panicked elsewhere, which is a fault of the engine.
    #[error("worker {worker} panicked outside of stages: {message}")]
    EnginePanicked {
        /// Which worker.
        worker: usize,
        /// What it said.
        message: String,
    },
    /// The processes of a job did not come together, or had to part.
    #[error(transparent)]
    Cluster(#[from] crate::cluster::ClusterError),
    /// What all processes do together failed in another one.
    #[error("process {process} stopped: {message}")]
    Elsewhere {
        /// Which.
        process: usize,
        /// What it says.
        message: String,
    },
    /// A virtual cluster's calibration is of another program.
    #[error("the calibration does not say what stage {0} costs; calibrate with the same algorithm and consistency")]
    Calibration(String),
    /// Threads could not be started.
    #[error("starting workers: {0}")]
    Start(String),
}
