//! What happens when all threads of all processes have gathered their accesses: rows are placed, and laid out.

use std::sync::Mutex;

use megagrid_partition::parallel::lock;

use super::fixed::FixedCache;
use super::gather::{Gather, Pattern, Recording};
use super::shared::{Shared, Specialized};
use crate::Error;
use crate::server::frame::{Frame, Verb};
use crate::server::statistics::{Preprocessing, Statistics, timed};

impl Shared {
    /// Takes one thread's recording. The last thread specializes, the others wait for it.
    pub(super) fn finish_gather(&self, thread: usize, recording: Recording) -> Result<&Specialized, Error> {
        if self.specialized.get().is_some() {
            return Err(Error::Options("accesses were gathered already; gather once".into()));
        }
        let recordings = {
            let mut recordings = lock(&self.recordings);
            recordings[thread] = Some(recording);
            let all = recordings.iter().all(Option::is_some);
            all.then(|| recordings.iter_mut().filter_map(Option::take).collect::<Vec<_>>())
        };
        if let Some(recordings) = recordings {
            match self.specialize(&recordings) {
                Ok(specialized) => {
                    // Nobody else sets it: this was the last thread.
                    let _ = self.specialized.set(specialized);
                    self.signal.notify();
                }
                Err(error) => self.fail(error),
            }
        }
        self.wait(|| self.specialized.get())
    }

    fn specialize(&self, recordings: &[Recording]) -> Result<Specialized, Error> {
        let origin = self.common_clock()?;
        let is_real = recordings.iter().any(|recording| recording.mode == Gather::Real);
        if is_real && !recordings.iter().all(Recording::is_closed) {
            return Err(Error::Options("gathering in a real iteration ends after its last clock".into()));
        }
        let settings = &self.options.specializations;
        let mut took = Preprocessing::default();
        let mut pattern = timed(&mut took.merge, || Pattern::new(recordings, settings.early_ratio));
        timed(&mut took.choice, || pattern.choose_cached(recordings, settings.thread_cache));
        if settings.placement {
            timed(&mut took.placement, || self.place(&pattern))?;
        }
        if settings.placement || is_real {
            // All updates so far are in the servers, and rows that were moved have arrived.
            self.ask(|| Frame::new(Verb::Barrier))?;
        }
        let fixed = match settings.static_structures {
            true => {
                let make = || FixedCache::new(&pattern, &self.tables, self.links.clone());
                Some(timed(&mut took.static_structures, make)?)
            }
            false => None,
        };
        lock(&self.statistics).add(&Statistics { preprocessing: took, ..Statistics::default() });
        if fixed.is_some() {
            pattern.rows.iter().for_each(|&key| self.dynamic.forget(key));
        }
        self.forget_prefetch(origin);
        let unlisted = pattern.phases.iter().map(|_| Mutex::default()).collect();
        Ok(Specialized { pattern, fixed, origin, unlisted })
    }

    /// Tells the servers how often this process accesses their rows, and waits until they have placed them.
    fn place(&self, pattern: &Pattern) -> Result<(), Error> {
        let mut batches = self.links.batches(Verb::Access, &self.tables);
        for &key in &pattern.rows {
            let clocks = pattern.clocks_of.get(&key).copied().unwrap_or(0);
            batches.push(self.links.server(key), key, &clocks.to_le_bytes());
        }
        batches.finish();
        self.ask(|| Frame::new(Verb::Access).set(|header| header.flags = 1)).map(|_| ())
    }
}
