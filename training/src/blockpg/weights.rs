//! Between weights by the features of samples, as they are trained, and models.

use std::sync::Arc;

use megagrid_partition::{EdgeSource, Side};

use super::class_weights::listed;
use super::data::Samples;
use super::model::Linear;
use crate::Error;

/// Makes a model of weights by feature, the intercept last if there is one.
pub(super) fn model_of<'w>(samples: &Samples, of_models: impl Iterator<Item = &'w [f64]>) -> Result<Linear, Error> {
    let (mut weights, mut intercepts) = (Vec::new(), Vec::new());
    for model in of_models {
        weights.extend_from_slice(&model[..samples.features.len()]);
        intercepts.push(samples.intercept.map_or(0.0, |feature| model[feature]));
    }
    let Samples { normalize, hash_bits, words, .. } = *samples;
    let (classes, positive) = (samples.labels.classes.clone(), samples.positive.clone());
    let model = Linear::new(Arc::clone(&samples.features), classes, weights, intercepts)?;
    Ok(Linear { normalize, positive, hash_bits, words, ..model })
}

/// Returns the weights of each model by the features of samples, the intercept last if there is one; those of a class that `linear`
/// does not know are 0.
pub(super) fn all_weights(linear: &Linear, samples: &Samples) -> Result<Vec<Vec<f64>>, Error> {
    let known: Vec<_> = (0..samples.num_models()).map(|model| linear.row_of(samples.class(model))).collect();
    if known.iter().all(Option::is_none) {
        let [found, expected] = [&linear.classes, &samples.labels.classes].map(|classes| listed(classes));
        return Err(Error::Missing(format!(
            "the model to begin from is of the classes {found}, and the samples of {expected}"
        )));
    }
    let is_same = Arc::ptr_eq(&linear.features, &samples.features);
    let places = if is_same { Vec::new() } else { linear.features.translate(&samples.features) };
    let of = |row: Option<(usize, f64)>| {
        let mut weights = vec![0.0; samples.values.num_vertices(Side::Right)];
        let Some((model, sign)) = row else { return weights };
        if is_same {
            weights.iter_mut().zip(linear.of(model)).for_each(|(to, weight)| *to = sign * weight);
        } else {
            let pairs = places.iter().zip(linear.of(model));
            pairs.for_each(|(place, weight)| place.iter().for_each(|&at| weights[at as usize] = sign * weight));
        }
        samples.intercept.into_iter().for_each(|feature| weights[feature] = sign * linear.intercepts[model]);
        weights
    };
    Ok(known.into_iter().map(of).collect())
}
