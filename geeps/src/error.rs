//! What can go wrong.

/// Why something was refused, or a run ended. It can be cloned, since all threads of a run are told of one failure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command whose ranges do not fit each other.
    #[error("command {command}: {problem}")]
    Command {
        /// Which.
        command: &'static str,
        /// What does not fit.
        problem: String,
    },
    /// Memory that the device does not have.
    #[error("the device has no room for {bytes} bytes more, {most}; take a smaller --budget")]
    DeviceMemory {
        /// How many were asked for, at a time.
        bytes: u64,
        /// What is known of how many it gives.
        most: String,
    },
    /// No device that kernels can run on.
    #[error(
        "there is no GPU with Vulkan ({reason}); install its driver, or mesa-vulkan-drivers, as Debian calls it, which has one that \
         computes on the processor"
    )]
    NoGpu {
        /// What the system says.
        reason: String,
    },
    /// A device that ceased to work.
    #[error("the device is lost ({reason}); what was written before is good")]
    DeviceLost {
        /// What its driver says.
        reason: String,
    },
    /// What a GPU refuses, which is an error of ours.
    #[error("the GPU refuses a command: {problem}")]
    Gpu {
        /// What it says.
        problem: String,
    },
    /// Memory beyond the budget.
    #[error("{resident} bytes of device memory would be taken; the budget is {budget}")]
    OverBudget {
        /// What would be taken.
        resident: u64,
        /// What may be.
        budget: u64,
    },
    /// A budget below what is held at a time.
    #[error("a budget of {budget} bytes lacks {lacking} for {layer}; take a larger --budget or a smaller --batch")]
    Budget {
        /// The budget.
        budget: u64,
        /// What is lacking.
        lacking: u64,
        /// The layer that needs most.
        layer: String,
    },
    /// A row that there is not.
    #[error("table {table} has rows 0..{rows}, and no row {key}")]
    Key {
        /// The table.
        table: String,
        /// What was asked for.
        key: u32,
        /// How many rows there are.
        rows: usize,
    },
    /// First values that do not fill a table.
    #[error("{found} first values were given for table {table}, which has {expected}")]
    TableLength {
        /// The table.
        table: String,
        /// Values given.
        found: usize,
        /// Values of the table.
        expected: usize,
    },
    /// A state to go on from that is another application's, or of other workers.
    #[error("the state to go on from is not of this training: {problem}")]
    State {
        /// What is different.
        problem: String,
    },
    /// A worker whose tables are not the server's, or that the server does not expect.
    #[error("worker {worker} has other tables than the server, or is none of its {workers}; declare the same in all")]
    OtherTables {
        /// The worker.
        worker: usize,
        /// How many the server expects.
        workers: usize,
    },
    /// A virtual iteration that ends before everything was posted.
    #[error("the virtual iteration ends while the {what} is held; post it")]
    NotPosted {
        /// What is held.
        what: String,
    },
    /// Local data that are accessed while they are held.
    #[error("{what} is accessed while it is held; post it first")]
    HeldTwice {
        /// Which.
        what: String,
    },
    /// Local data whose values are asked for after they were given up.
    #[error("{what} is fetched after a post without saving; save it, or access it without fetching")]
    GivenUp {
        /// Which.
        what: String,
    },
    /// Another order of accesses than in the virtual iteration.
    #[error(
        "worker {worker}: call {number} of iteration {iteration} is the {found}; in the virtual iteration it was the {expected}, and \
         indexes and buffers were made for that"
    )]
    OtherOrder {
        /// Whose.
        worker: usize,
        /// Which call of the iteration, from 1.
        number: usize,
        /// The iteration, from 1.
        iteration: u64,
        /// What was called.
        found: String,
        /// What is expected.
        expected: String,
    },
    /// An access beyond the iterations that were announced.
    #[error("an access after the last of {iterations} iterations; announce more when the worker starts")]
    TooManyIterations {
        /// How many were announced.
        iterations: u64,
    },
    /// A thread that the system does not start.
    #[error("a thread cannot be started: {reason}")]
    Thread {
        /// What the system says.
        reason: String,
    },
    /// A thread of ours that panicked.
    #[error("a thread of worker {worker} that moves data panicked; see its message above")]
    ThreadPanicked {
        /// Whose.
        worker: usize,
    },
    /// A worker that died in the middle of a run.
    #[error("worker {worker} is lost in iteration {iteration}; its message, if it has left one, is above")]
    WorkerLost {
        /// Which.
        worker: usize,
        /// The iteration that it was in, from 1.
        iteration: u64,
    },
    /// A setting out of range.
    #[error("{name} is {found}; expected {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// Data that are not what they are said to be.
    #[error("the data do not fit together: {problem}")]
    Samples {
        /// What does not fit.
        problem: String,
    },
    /// A loss that is no number.
    #[error("the loss became {loss} on worker {worker} in epoch {epoch}, iteration {iteration}; try a smaller --step")]
    Diverged {
        /// What it became.
        loss: f64,
        /// The worker, from 0.
        worker: usize,
        /// The epoch, from 1.
        epoch: u64,
        /// The iteration of the epoch, from 1.
        iteration: u64,
    },
    /// An objective that is no number.
    #[error("the objective is {objective} after epoch {epoch}; try a smaller --step")]
    NoObjective {
        /// What it is.
        objective: f64,
        /// The epoch, from 1.
        epoch: u64,
    },
    /// Memory that this machine does not have.
    #[error("this machine has no memory for {values} values more; take fewer or smaller layers, or fewer --dims")]
    HostMemory {
        /// How many were asked for.
        values: usize,
    },
    /// Another process that cannot be reached any more, or that has failed.
    #[error("process {process} is lost: {problem}; what was written before is good")]
    Process {
        /// Which.
        process: usize,
        /// How that was noticed.
        problem: String,
    },
    /// A worker that has ended.
    #[error("the worker has ended")]
    Stopped,
}
