//! A run on threads of its own: Python waits for it, looks at it, and may end it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;
use megagrid_training::record::Record;
use megagrid_training::tune::{TuneOptions, tune};
use megagrid_training::{Algorithm, Error, Job, Observer, Processes, Trained, json};
use pyo3::prelude::*;

use crate::error::{panicked, raised};

/// What a run came to, once Python asks for it.
type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// What Python and the run's threads share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether the run is to end.
    asks: bool,
    /// An iteration that Python has not yet seen: the run waits until it has.
    iteration: Option<String>,
    is_shown: bool,
    has_ended: bool,
    outcome: Option<Outcome>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// Shows each iteration, if somebody looks.
struct Watch {
    shared: Arc<Shared>,
    is_watched: bool,
}

impl Observer for Watch {
    fn iteration(&self, record: &Record) {
        let Some(last) = record.iterations.last().filter(|_| self.is_watched) else { return };
        // A record that cannot be written is shown as nothing; the run's own end says why.
        let text = json(last).map(|last| last.to_string()).unwrap_or_default();
        self.shared.change(|state| state.iteration = Some(text));
        let is_unseen = |state: &mut State| state.iteration.is_some() && !state.asks;
        drop(self.shared.changed.wait_while(self.shared.lock(), is_unseen));
    }

    fn asks_to_end(&self) -> bool {
        self.shared.lock().asks
    }
}

/// A run under way. When nobody has it any more, it ends after its iteration.
#[pyclass(frozen, module = "megagrid._megagrid")]
pub struct Run(Arc<Shared>);

impl Run {
    /// Begins a run, which finds settings on the way if it is to be tuned. `job` reads data, on the run's threads; `give` makes Python's objects of what was trained.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn begin<A: Algorithm>(
        threads: Option<usize>,
        is_watched: bool,
        tuning: Option<TuneOptions>,
        job: impl FnOnce() -> Result<Job<A>, Error> + Send + 'static,
        give: impl FnOnce(Python<'_>, Trained<A>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Self> {
        let shared = Arc::new(Shared::default());
        let watch = Watch { shared: Arc::clone(&shared), is_watched };
        let train = move || {
            let (job, processes) = (Job { is_kept: true, may_end: true, ..job()? }, Processes::default());
            match tuning {
                Some(tuning) => tune(job, &tuning, &processes, &watch).map(|tuned| tuned.trained),
                None => megagrid_training::train(job, &processes, &watch),
            }
        };
        let ours = Arc::clone(&shared);
        let act = move || {
            let outcome: Outcome =
                match catch_unwind(AssertUnwindSafe(|| pool(threads).map(|pool| pool.install(train)))) {
                    Ok(Ok(Ok(trained))) => Box::new(move |py| give(py, trained)),
                    Ok(Ok(Err(error))) => Box::new(move |_| Err(raised(&error))),
                    Ok(Err(error)) => Box::new(move |_| Err(error)),
                    Err(panic) => Box::new(move |_| Err(panicked(&*panic))),
                };
            ours.change(|state| (state.has_ended, state.outcome) = (true, Some(outcome)));
        };
        std::thread::Builder::new().name("megagrid-run".to_owned()).spawn(act)?;
        Ok(Self(shared))
    }
}

#[pymethods]
impl Run {
    /// Waits for what comes next, some seconds at most: an iteration as JSON, or `None`; see `has_ended`. A run that is watched goes
    /// on from the iteration that was shown last.
    fn next(&self, py: Python<'_>, seconds: f64) -> Option<String> {
        let until = Instant::now() + Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| {
            let mut state = self.0.lock();
            if std::mem::take(&mut state.is_shown) {
                state.iteration = None;
                self.0.changed.notify_all();
            }
            while state.iteration.is_none() && !state.has_ended {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            state.is_shown = state.iteration.is_some();
            state.iteration.clone()
        })
    }

    /// Waits until the run has ended, some seconds at most; tells whether it has.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| {
            let waited = self.0.changed.wait_timeout_while(self.0.lock(), seconds, |state| !state.has_ended);
            waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
        })
    }

    /// Lets the run end after its iteration.
    fn end(&self) {
        self.0.change(|state| state.asks = true);
    }

    #[getter]
    fn has_ended(&self) -> bool {
        self.0.lock().has_ended
    }

    /// Returns what was trained, once.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let outcome = self.0.lock().outcome.take();
        match outcome {
            Some(outcome) => outcome(py),
            None => Err(raised(&Error::Missing("the run has no result yet, or it was taken".to_owned()))),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes threads that last as long as what they are made for: none are there before, or in a process that was forked.
///
/// # Errors
/// A system that refuses threads.
pub fn pool(threads: Option<usize>) -> PyResult<rayon::ThreadPool> {
    let threads = threads.unwrap_or_else(|| megagrid_engine::Topology::detect().num_cores());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|n| format!("megagrid-{n}")).build();
    pool.map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(format!("starting threads: {error}")))
}
