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
    #[error("the device has no room for {values} values more; take a smaller --budget")]
    DeviceMemory {
        /// How many were asked for.
        values: usize,
    },
}
