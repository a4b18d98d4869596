//! Errors of the library as the exceptions that Python expects, with the library's text.

use std::any::Any;
use std::io;

use megagrid_datasets::Error as DataError;
use megagrid_engine::Error as EngineError;
use megagrid_training::Error;
use pyo3::exceptions::{
    PyFileNotFoundError, PyInterruptedError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::{PyErr, PyResult};

/// Makes an exception of an error.
pub fn raised(error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::TooLarge { .. } | Error::Engine(EngineError::OutOfMemory(_) | EngineError::NotEnoughMemory { .. }) => {
            PyMemoryError::new_err(text)
        }
        Error::Engine(_) | Error::Cluster(_) | Error::Tuner(_) => PyRuntimeError::new_err(text),
        Error::Io { source, .. } | Error::Data(DataError::Io { source, .. }) => of_system(source, text),
        // A model's directory that is not there is told by its file.
        Error::Invalid { path, .. } if !path.exists() && path.file_name().is_some_and(|name| name == "model.json") => {
            PyFileNotFoundError::new_err(text)
        }
        Error::Interrupted { .. } => PyInterruptedError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// Makes an exception of a failure.
pub fn raise<T, E: Into<Error>>(outcome: Result<T, E>) -> PyResult<T> {
    outcome.map_err(|error| raised(&error.into()))
}

fn of_system(source: &io::Error, text: String) -> PyErr {
    match source.kind() {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        io::ErrorKind::OutOfMemory => PyMemoryError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

/// Makes an exception of a panic.
pub fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!("a mistake in megagrid, please report it: {}", text.unwrap_or("no message")))
}
