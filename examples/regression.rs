//! Fits a line through samples of many features by summed gradients, whose parts are applied as they come: with slack no worker waits
//! for the gradients of another.
//!
//!     cargo run --release -p megagrid-examples --example regression

use megagrid::prelude::*;

vertex! {
    /// A sample: the value that is to be predicted, and what the weights of its features predict.
    struct Sample { sync: [f32; 2] }
}
vertex! {
    /// The weight of a feature, and its gradient.
    struct Weight { sync: f32, delta: f32 }
}
program! { struct Linear { left: Sample, right: Weight, edge: f32 } }

const STEP: f32 = 0.04;

/// Predicts a batch of samples, sums the gradients of their squared errors, and takes a step along them.
fn descend() -> Sequence<Linear, impl Stages<Linear>> {
    let predict = |sample: Update<Sample>, weight: Read<Weight>, x: &f32| sample.sync[1] += *x * *weight.sync;
    let gradient =
        |sample: Read<Sample>, weight: Add<Weight>, x: &f32| *weight.delta += *x * (sample.sync[0] - sample.sync[1]);
    let forget = |sample: Update<Sample>, _: Read<Weight>| sample.sync[1] = 0.0;
    let step = additive(|weight: Master<Weight>| *weight.sync += STEP * *weight.delta);
    Sequence::new().mini_batch(BatchSize::Vertices(Side::Left, 250), move |batch| {
        batch.exchange(predict).exchange(gradient).exchange(forget).apply(Right, step)
    })
}

/// Returns the largest error of a weight after some iterations.
fn fit(features: usize, settings: &Settings) -> Result<f32, Error> {
    let truth = |feature: usize| Random::new(7, feature as u64).unit() as f32 - 0.5;
    let mut random = Random::new(3, 0);
    let (mut values, mut samples) = (Vec::new(), Vec::new());
    for sample in 0..2000_u32 {
        let mut y = 0.0;
        for _ in 0..6 {
            let (feature, x) = (random.below(features as u64) as u32, random.unit() as f32 * 2.0 - 1.0);
            values.push((sample, feature, x));
            y += x * truth(feature as usize);
        }
        samples.push(y);
    }
    let data = Edges::bipartite(samples.len(), features, values)?;
    let mut engine = Engine::<Linear>::new(&data, descend(), settings)?;
    engine.init(Left, |id, sample| sample.sync[0] = samples[id]);
    engine.iterate(60)?;
    let weights = engine.on(Right);
    Ok((0..features).map(|id| (*weights.sync(id) - truth(id)).abs()).fold(0.0, f32::max))
}

fn main() -> Result<(), Error> {
    for slack in [0, 2] {
        let error = fit(100, &Settings { workers: 2, slack: Some(slack), ..Settings::default() })?;
        println!("slack {slack}: every weight within {error:.5}");
        assert!(error < 0.01, "{error}");
    }
    Ok(())
}

#[test]
fn it_fits() {
    main().expect("the samples are good");
}
