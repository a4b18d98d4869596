//! From an error to one message on stderr and an exit code.

use std::process::ExitCode;

use crate::interrupt;

/// Why a command ended without being done, beside failures of the libraries.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Options that contradict each other or are out of range.
    #[error("{0}; see --help")]
    Usage(String),
    /// The reader of our output, `head` say, has had enough.
    #[error("nobody reads stdout any more")]
    Closed,
    /// An interrupt in the middle of its output.
    #[error("interrupted before all rows were written")]
    Interrupted,
    /// A command of several processes, one of which failed. It has said why; the message says which.
    #[error("{}", message.as_deref().unwrap_or_default())]
    Child {
        /// The exit code.
        code: u8,
        /// Which process ended, and how; nothing where all were interrupted.
        message: Option<String>,
    },
}

/// Says that the options are wrong.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure::Usage(message.into()).into()
}

/// Prints an error in one line, and returns the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let code = code(error);
    // Other pipes that are closed, to another process say, are failures.
    let message = if code == 0 { String::new() } else { message(error) };
    if !message.is_empty() {
        eprintln!("megagrid: {message}");
    }
    ExitCode::from(code)
}

/// Joins an error and its causes in one line, but for causes that the line ends with already.
pub fn message(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(|cause| cause.to_string().replace('\n', " ")) {
        if line.is_empty() {
            line = cause;
        } else if !line.ends_with(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

fn code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(1)
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    use megagrid_algorithms::Error as Algorithm;
    use megagrid_datasets::Error as Data;
    use megagrid_engine::Error as Engine;
    use megagrid_engine::cluster::ClusterError;
    use megagrid_training::Error as Training;
    match cause.downcast_ref::<Failure>() {
        Some(Failure::Usage(_)) => return Some(2),
        Some(Failure::Closed) => return Some(0),
        Some(Failure::Interrupted) => return Some(interrupt::EXIT_CODE as u8),
        Some(Failure::Child { code, .. }) => return Some(*code),
        None => {}
    }
    if let Some(Training::Interrupted { .. }) = cause.downcast_ref() {
        return Some(interrupt::EXIT_CODE as u8);
    }
    let out_of_range = matches!(error_of_cluster(cause), Some(ClusterError::Membership { .. }))
        || matches!(cause.downcast_ref(), Some(Algorithm::Setting { .. }))
        || matches!(cause.downcast_ref(), Some(Engine::Setting { .. } | Engine::PassesPerClock(_)))
        || matches!(cause.downcast_ref(), Some(Training::Option(_)))
        || matches!(
            cause.downcast_ref(),
            Some(Data::HoldoutRange(_) | Data::UnknownFormatName { .. } | Data::Setting { .. })
        );
    #[cfg(feature = "baselines")]
    let out_of_range = out_of_range || matches!(cause.downcast_ref(), Some(megagrid_geeps::Error::Setting { .. }));
    out_of_range.then_some(2)
}

/// Finds an error of the cluster, which the engine shows as its own.
pub fn error_of_cluster<'e>(
    cause: &'e (dyn std::error::Error + 'static),
) -> Option<&'e megagrid_engine::cluster::ClusterError> {
    match cause.downcast_ref() {
        Some(megagrid_engine::Error::Cluster(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("no such\nfile").context("a.txt: no such file").context("reading");
        assert_eq!(message(&error), "reading: a.txt: no such file");
        assert_eq!(code(&error), 1);
        assert_eq!(code(&usage("no").context("options")), 2);
    }
}
