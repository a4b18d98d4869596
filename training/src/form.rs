//! The one implementation of [`Form`], [`Run`] and [`Pause`], for every [`Trainer`].

use std::path::Path;
use std::sync::Arc;

use megagrid_engine::plan::Plan;
use megagrid_engine::{Branches, Engine, IterationReport, Settings, checkpoint};

use crate::Error;
use crate::algorithm::{Between, Form, Pause, Run};
use crate::data::Data;
use crate::leg::Leg;
use crate::measured::Found;
use crate::record::{InputSizes, Machine, Metrics};
use crate::trainer::{DataOf, ModelOf, OptionsOf, Trainer};

/// Makes the form of a trainer.
///
/// # Errors
/// Options that do not fit the data.
pub fn form<T: Trainer>(
    data: Arc<DataOf<T>>,
    options: OptionsOf<T>,
    settings: Settings,
) -> Result<Box<dyn Form<T::Algorithm>>, Error> {
    let trainer = T::new(&data, &options, &settings)?;
    Ok(Box::new(Trained { trainer, data, options, settings }))
}

/// A trainer with what it trains on.
struct Trained<T: Trainer> {
    trainer: T,
    data: Arc<DataOf<T>>,
    options: OptionsOf<T>,
    settings: Settings,
}

impl<T: Trainer> Form<T::Algorithm> for Trained<T> {
    fn options(&self) -> OptionsOf<T> {
        self.trainer.resolved(&self.data, &self.options)
    }

    fn plan(&self) -> Result<Plan, Error> {
        let Self { trainer, data, settings, .. } = self;
        Ok(megagrid_engine::plan(trainer.source(data), &trainer.sequence(), &suited(trainer, settings))?)
    }

    fn begin(self: Box<Self>, first: u64) -> Result<Box<dyn Run<T::Algorithm>>, Error> {
        let Self { trainer, data, settings, .. } = &*self;
        let mut engine = Engine::new(trainer.source(data), trainer.sequence(), &suited(trainer, settings))?;
        trainer.init(data, &mut engine)?;
        Ok(Box::new(Engines { branches: Branches::new(engine, first), of: *self }))
    }
}

/// Returns the settings as a trainer wants them.
fn suited(trainer: &impl Trainer, settings: &Settings) -> Settings {
    let (dims, passes_per_clock) = (trainer.dims(), trainer.passes_per_clock());
    Settings { dims, passes_per_clock, workers: trainer.workers(settings.workers), ..settings.clone() }
}

/// An engine and its branches.
struct Engines<T: Trainer> {
    of: Trained<T>,
    branches: Branches<T::Program>,
}

impl<T: Trainer> Run<T::Algorithm> for Engines<T> {
    fn input(&self) -> InputSizes {
        self.of.data.sizes()
    }

    fn machine(&mut self) -> Machine {
        let engine = self.branches.engine();
        Machine {
            workers: engine.plan().threads(),
            processes: Some(engine.plan().processes.count).filter(|&count| count > 1),
            vector: self.of.settings.level.name().into(),
            memory_estimate_bytes: engine.plan().memory_bytes,
            memory_bytes: (engine.grid().edge_bytes() + engine.grid().vertex_bytes()) as u64,
            best_model_bytes: None,
            read_bytes: Vec::new(),
            links: Vec::new(),
            placement: Some(engine.plan().quality.into()),
        }
    }

    fn plan(&mut self) -> &Plan {
        self.branches.engine().plan()
    }

    fn iterations(&mut self) -> u64 {
        self.branches.engine().iterations()
    }

    fn leg(&mut self) -> Leg {
        self.of.trainer.leg(&self.of.options, self.branches.engine())
    }

    fn most_iterations(&mut self) -> u64 {
        self.of.trainer.most_iterations(&self.of.options, self.branches.engine().iterations())
    }

    fn iterate(&mut self, last: u64, between: Between<'_, T::Algorithm>) -> Result<(), Error> {
        let Trained { trainer, data, .. } = &mut self.of;
        let mut failed = None;
        let step = |engine: &mut Engine<T::Program>, _: &IterationReport| {
            if let Err(error) = trainer.after_iteration(data, engine) {
                failed = Some(error);
                return Ok(true);
            }
            let reports: Vec<_> = engine.reports().iter().map(|one| trainer.corrected(one).into_owned()).collect();
            Ok(between(&reports, &mut Paused { trainer, data, engine }).is_break())
        };
        self.branches.engine().run_until(last, step)?;
        failed.map_or(Ok(()), Err)
    }

    fn pause(&mut self) -> Box<dyn Pause<T::Algorithm> + '_> {
        let Trained { trainer, data, .. } = &mut self.of;
        Box::new(Paused { trainer, data, engine: self.branches.engine() })
    }

    fn next(&mut self, best: Option<ModelOf<T>>) -> Result<(), Error> {
        self.of.trainer.next(&self.of.data, self.branches.engine(), best)
    }

    fn check_target(&mut self, directory: &Path) -> Result<(), Error> {
        Ok(checkpoint::check_target(self.branches.engine(), directory)?)
    }

    fn load(&mut self, directory: &Path) -> Result<(), Error> {
        let (_, notes) = checkpoint::load_with(self.branches.engine(), directory)?;
        let taken = self.of.trainer.take_notes(&self.of.data, &notes);
        taken.map_err(|error| Error::invalid(directory, error.to_string()))
    }

    fn fork(&mut self, parent: u64, child: u64) -> Result<(), Error> {
        self.branches.fork(parent, child)?;
        Ok(())
    }

    fn select(&mut self, branch: u64) -> Result<(), Error> {
        self.branches.select(branch)?;
        Ok(())
    }

    fn free(&mut self, branch: u64) -> Result<(), Error> {
        Ok(self.branches.free(branch)?)
    }

    fn adapt(&mut self, options: &OptionsOf<T>, settings: &Settings) -> Result<(), Error> {
        let data = &self.of.data;
        let trainer = T::new(data, options, settings)?;
        let suited = suited(&trainer, settings);
        self.branches.engine().reconfigure(trainer.source(data), trainer.sequence(), &suited)?;
        (self.of.trainer, self.of.options, self.of.settings) = (trainer, options.clone(), settings.clone());
        Ok(())
    }

    fn release(&mut self) -> Result<(), Error> {
        let is_first = self.branches.engine().plan().processes.this == 0;
        if let Some(data) = Arc::get_mut(&mut self.of.data) {
            if is_first {
                self.of.trainer.keep(data)?;
            }
            data.release();
        }
        Ok(())
    }

    fn finish(&self, model: &mut ModelOf<T>) -> Result<(), Error> {
        self.of.trainer.finish(&self.of.data, model)
    }
}

/// What a run shows between two iterations.
struct Paused<'p, T: Trainer> {
    trainer: &'p mut T,
    data: &'p DataOf<T>,
    engine: &'p mut Engine<T::Program>,
}

impl<T: Trainer> Pause<T::Algorithm> for Paused<'_, T> {
    fn is_due(&self) -> bool {
        self.trainer.is_due(self.data, self.engine)
    }

    fn look(&mut self, is_due: bool, is_tested: bool) -> Result<Found, Error> {
        let Self { trainer, data, engine } = self;
        let running = trainer.running(data, engine);
        let tested = if is_tested { trainer.test(data, engine)? } else { Metrics::new() };
        let measured = if is_due { trainer.measure(data, engine)? } else { None };
        Ok(Found::new(running, measured, tested))
    }

    fn first_loss(&self) -> Option<f64> {
        self.trainer.first_loss()
    }

    fn save(&mut self, directory: &Path) -> Result<(), Error> {
        Ok(checkpoint::save_with(self.engine, directory, &self.trainer.notes()?)?)
    }

    fn collect(&mut self) -> Result<(), Error> {
        self.trainer.collect(self.engine)
    }

    fn model(&self) -> Result<ModelOf<T>, Error> {
        self.trainer.model(self.data, self.engine)
    }

    fn model_so_far(&self) -> Result<ModelOf<T>, Error> {
        self.trainer.model_so_far(self.data, self.engine)
    }
}
