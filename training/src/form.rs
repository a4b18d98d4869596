//! A program of an algorithm whose type is not known: what it would do, and runs of it with their branches. One implementation
//! for every [`Trainer`].

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use megagrid_engine::plan::Plan;
use megagrid_engine::{Branches, Engine, IterationReport, Settings, checkpoint};

use crate::Error;
use crate::algorithm::{Algorithm, Data, DataOf, Leg, Measured, ModelOf, OptionsOf, Trainer};
use crate::record::{InputSizes, Machine};

/// Makes a form of data, options and settings.
pub type MakeForm<A> =
    fn(Arc<<A as Algorithm>::Data>, <A as Algorithm>::Options, Settings) -> Result<Box<dyn Form<A>>, Error>;

/// A program of an algorithm with its data and options.
pub trait Form<A: Algorithm> {
    /// Returns the options with all that follows from data and settings.
    fn options(&self) -> A::Options;

    /// Returns what the engine would do.
    ///
    /// # Errors
    /// What making a plan refuses.
    fn plan(&self) -> Result<Plan, Error>;

    /// Makes an engine with first values, whose state is the branch `first`.
    ///
    /// # Errors
    /// Not enough memory; data that cannot be read.
    fn begin(self: Box<Self>, first: u64) -> Result<Box<dyn Run<A>>, Error>;
}

/// A run under way, of several branches one of which is in the engine: the one that was [selected](Run::select) or
/// [forked](Run::fork) last. Every method is called by all processes, unless it says otherwise.
pub trait Run<A: Algorithm> {
    /// Returns the sizes of the input.
    fn input(&self) -> InputSizes;
    /// Describes what it runs on.
    fn machine(&mut self) -> Machine;
    /// Returns the iterations done.
    fn iterations(&mut self) -> u64;
    /// Returns the leg that the run is on.
    fn leg(&mut self) -> Leg;
    /// Returns the iterations of all legs, at most, of a run that begins where this one is.
    fn most_iterations(&mut self) -> u64;

    /// Runs iterations until `last` are done in all, or `between` breaks.
    ///
    /// # Errors
    /// Those of the engine.
    fn iterate(&mut self, last: u64, between: Between<'_, A>) -> Result<(), Error>;
    /// Looks at the run, between iterations.
    fn pause(&mut self) -> Box<dyn Pause<A> + '_>;
    /// Prepares the next leg.
    ///
    /// # Errors
    /// See [`Trainer::next`].
    fn next(&mut self) -> Result<(), Error>;

    /// Tells whether checkpoints can be written to a directory.
    ///
    /// # Errors
    /// Why not.
    fn check_target(&mut self, directory: &Path) -> Result<(), Error>;
    /// Goes on from the last checkpoint in a directory.
    ///
    /// # Errors
    /// No checkpoint that fits.
    fn load(&mut self, directory: &Path) -> Result<(), Error>;

    /// Copies a branch to another, which is then in the engine.
    ///
    /// # Errors
    /// Not enough memory.
    fn fork(&mut self, parent: u64, child: u64) -> Result<(), Error>;
    /// Brings a branch into the engine.
    ///
    /// # Errors
    /// No such branch.
    fn select(&mut self, branch: u64) -> Result<(), Error>;
    /// Ends a branch.
    ///
    /// # Errors
    /// No such branch.
    fn free(&mut self, branch: u64) -> Result<(), Error>;
    /// Goes on with other options and settings, on the same grid.
    ///
    /// # Errors
    /// What needs another grid.
    fn adapt(&mut self, options: &A::Options, settings: &Settings) -> Result<(), Error>;

    /// Gives up the edges, where only the grid needs them and nobody else holds the data.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn release(&mut self) -> Result<(), Error>;
    /// Adds to the final model what is found at the end only. The first process calls it.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn finish(&self, model: &mut A::Model) -> Result<(), Error>;
}

/// What is done after each iteration: it sees the report and the run.
pub type Between<'b, A> = &'b mut dyn FnMut(&IterationReport, &mut dyn Pause<A>) -> ControlFlow<()>;

/// A run between two iterations.
pub trait Pause<A: Algorithm> {
    /// Measures the objective and other values; see [`Trainer::measure`]. All processes call it.
    ///
    /// # Errors
    /// A lost process.
    fn measure(&mut self) -> Result<Option<Measured>, Error>;
    /// Returns the loss before the first iteration, where that cannot be measured.
    fn first_loss(&self) -> Option<f64>;
    /// Writes a checkpoint. All processes call it.
    ///
    /// # Errors
    /// A disk that is full or fails.
    fn save(&mut self, directory: &Path) -> Result<(), Error>;
    /// Brings all vertices to the first process. All processes call it.
    ///
    /// # Errors
    /// A lost process.
    fn collect(&mut self) -> Result<(), Error>;
    /// Takes the model out. The first process calls it, where all vertices have been collected.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn model(&self) -> Result<A::Model, Error>;
}

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
        let settings = Settings { dims: trainer.dims(), ..settings.clone() };
        Ok(megagrid_engine::plan(trainer.source(data), &trainer.sequence(), &settings)?)
    }

    fn begin(self: Box<Self>, first: u64) -> Result<Box<dyn Run<T::Algorithm>>, Error> {
        let Self { trainer, data, settings, .. } = &*self;
        let settings = Settings { dims: trainer.dims(), ..settings.clone() };
        let mut engine = Engine::new(trainer.source(data), trainer.sequence(), &settings)?;
        trainer.init(data, &mut engine)?;
        Ok(Box::new(Engines { branches: Branches::new(engine, first), of: *self }))
    }
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
            vector: self.of.settings.level.name().into(),
            memory_estimate_bytes: engine.plan().memory_bytes,
            memory_bytes: (engine.grid().edge_bytes() + engine.grid().vertex_bytes()) as u64,
            best_model_bytes: None,
            placement: Some(engine.plan().placement.into()),
        }
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
        let step = |engine: &mut Engine<T::Program>, report: &IterationReport| {
            let report = trainer.corrected(report).into_owned();
            Ok(between(&report, &mut Paused { trainer, data, engine }).is_break())
        };
        Ok(self.branches.engine().run_until(last, step)?)
    }

    fn pause(&mut self) -> Box<dyn Pause<T::Algorithm> + '_> {
        let Trained { trainer, data, .. } = &mut self.of;
        Box::new(Paused { trainer, data, engine: self.branches.engine() })
    }

    fn next(&mut self) -> Result<(), Error> {
        self.of.trainer.next(&self.of.data, self.branches.engine())
    }

    fn check_target(&mut self, directory: &Path) -> Result<(), Error> {
        Ok(checkpoint::check_target(self.branches.engine(), directory)?)
    }

    fn load(&mut self, directory: &Path) -> Result<(), Error> {
        checkpoint::load(self.branches.engine(), directory)?;
        Ok(())
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
        let of_rows = Settings { dims: trainer.dims(), ..settings.clone() };
        self.branches.engine().reconfigure(trainer.source(data), trainer.sequence(), &of_rows)?;
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
    fn measure(&mut self) -> Result<Option<Measured>, Error> {
        self.trainer.measure(self.data, self.engine)
    }

    fn first_loss(&self) -> Option<f64> {
        self.trainer.first_loss()
    }

    fn save(&mut self, directory: &Path) -> Result<(), Error> {
        Ok(checkpoint::save(self.engine, directory)?)
    }

    fn collect(&mut self) -> Result<(), Error> {
        self.trainer.collect(self.engine)
    }

    fn model(&self) -> Result<ModelOf<T>, Error> {
        self.trainer.model(self.data, self.engine)
    }
}
