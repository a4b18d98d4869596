//! Sparse logistic regression as an algorithm: what is refused, what is tuned, and which program fits the weights.

use std::sync::Arc;

use megagrid_engine::Settings;
use megagrid_partition::{EdgeSource, Side};

use super::data::Samples;
use super::model::Linear;
use super::newton::{self, NewtonSolver};
use super::options::LinearOptions;
use super::path::TESTED_BY;
use super::penalties::Penalties;
use super::spreads;
use super::steps::StepSolver;
use super::trainer::Fitter;
use super::turns::{self, Turns};
use super::weights::all_weights;
use crate::algorithm::{Algorithm, Form, Knob, MakeForm};
use crate::form::form;
use crate::{Error, RunOptions, UpdatedOn};

/// Sparse logistic regression.
#[derive(Clone, Copy, Debug)]
pub struct Regression;

impl Algorithm for Regression {
    const NAME: &'static str = "blockpg";
    const ADVICE: &'static str = "scale the values, with --normalize say";
    const TESTED_BY: Option<&'static str> = Some(TESTED_BY);
    /// l1 says how closely a model is fitted, and a certificate that it is: nothing is stopped early unless that is asked for.
    const PATIENCE: u64 = 0;
    const KNOBS: &'static [Knob] = &[
        Knob { name: "blocks", is_layout: true, is_timed: true },
        Knob { name: "delay", is_layout: false, is_timed: true },
        Knob { name: "workers", is_layout: true, is_timed: true },
    ];
    type Data = Samples;
    type Options = LinearOptions;
    type Model = Linear;

    #[inline(never)]
    fn form(_: &Samples, _: &LinearOptions) -> MakeForm<Self> {
        by_size
    }

    fn start_from(samples: &mut Samples, _: &LinearOptions, model: Linear) -> Result<(), Error> {
        samples.start = all_weights(&model, samples)?;
        Ok(())
    }

    fn updated_on(_: &Linear) -> Result<UpdatedOn, Error> {
        Ok(UpdatedOn::All)
    }

    /// A model is of one l1 of a path.
    fn continued(options: LinearOptions, model: &Linear, _: UpdatedOn) -> LinearOptions {
        let l1 = model.l1.or(options.l1.given().last().copied());
        LinearOptions { l1: Penalties::Given(l1.into_iter().collect()), ..options }
    }

    /// Blocks around their default; workers, if there are several, where there are no blocks unless they are asked for.
    fn tuned(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Vec<String> {
        let [number, features] = [Side::Left, Side::Right].map(|side| samples.values.num_vertices(side));
        let is_newton = || is_newton(samples, options, settings).is_ok_and(|is_newton| is_newton);
        if options.descends(number, settings) || is_newton() {
            if settings.workers == 1 {
                return Vec::new();
            }
            let fewer = std::iter::successors(Some(1), |workers| Some(2 * workers));
            let workers = fewer.take_while(|&fewer| fewer < settings.workers).chain([settings.workers]);
            return vec![format!("workers={}", workers.map(|number| number.to_string()).collect::<Vec<_>>().join(","))];
        }
        let blocks = options.num_blocks(samples.values.num_edges(), features);
        let fewer = if blocks > 1 { format!("{},", blocks / 2) } else { String::new() };
        let delay = settings.slack.map(|_| "delay=0,1,2".to_owned());
        [format!("blocks={fewer}{blocks},{}", 2 * blocks)].into_iter().chain(delay).collect()
    }

    /// Of several models one is in the engine, and only the last iterations have all.
    fn check_run(samples: &Samples, options: &LinearOptions, run: &RunOptions, is_tuned: bool) -> Result<(), Error> {
        samples.check_calibration()?;
        if matches!(options.l1, Penalties::Path(_)) && samples.test.is_none() {
            return Err(Error::option(
                "--l1 path chooses by samples to test on: keep a part of them with --holdout 0.1, or name others with --test",
            ));
        }
        if options.l1.only().is_none() && run.patience.is_some_and(|patience| patience > 0) {
            return Err(Error::option(
                "--patience ends a training at one l1, and of a path the best l1 is the model; leave out --patience, or give one --l1",
            ));
        }
        if !is_tuned {
            spreads::warn(samples)?;
        }
        if options.multinomial && samples.num_models() > 1 {
            turns::check(samples)?;
        }
        if samples.calibrate && run.checkpoint_model {
            // Nothing else of the end changes what a model answers.
            return Err(Error::option(
                "--calibrate is found at the end of a run, and the models of --checkpoint-model would be without it; leave one of the two out",
            ));
        }
        let classes = samples.labels.classes.len();
        if classes > 2 && is_tuned {
            return Err(Error::option(format!(
                "tune tries settings on one model, and {classes} classes are fitted in turn; tune one class, which --positive names, \
                 and train all with the settings that it found: they change how long a fit takes, not what comes of it"
            )));
        }
        if classes > 2 && run.checkpoint_model && !options.multinomial {
            return Err(Error::option(format!(
                "--checkpoint-model writes models of a training under way, and {classes} classes are fitted one after the other, so that those to \
                 come would have no weights; leave it out"
            )));
        }
        Ok(())
    }

    fn check_tuned(options: &LinearOptions) -> Result<(), Error> {
        if options.l1.only().is_some() {
            return Ok(());
        }
        Err(Error::option("tuning takes one l1; find the settings first, and train the path with those that are found"))
    }
}

/// Makes the form that sizes and options ask for.
fn by_size(
    samples: Arc<Samples>,
    options: LinearOptions,
    settings: Settings,
) -> Result<Box<dyn Form<Regression>>, Error> {
    let l1 = options.l1.resolved(&samples, options.multinomial)?;
    let options = LinearOptions { l1, ..options };
    let is_newton = is_newton(&samples, &options, &settings)?;
    let make: MakeForm<Regression> = match (options.multinomial && samples.num_models() > 1, is_newton) {
        (false, false) => form::<Fitter<Regression, StepSolver>>,
        (false, true) => form::<Fitter<Regression, NewtonSolver>>,
        (true, false) => form::<Turns<Regression, StepSolver>>,
        (true, true) => form::<Turns<Regression, NewtonSolver>>,
    };
    make(samples, options, settings)
}

/// Tells whether all features take Newton's steps together: where they are few, and descent would be slow or is not among what there is.
fn is_newton(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<bool, Error> {
    // The least l1 of a path takes most of its iterations.
    let Some(config) = options.path().last().copied() else { return Ok(false) };
    if options.asks_for_blocks(settings) || !newton::suits(samples)? {
        return Ok(false);
    }
    Ok(!options.descends(samples.labels.of.len(), settings) || newton::descent_is_slow(samples, &config)?)
}
