//! Samples of classes, to train on and to test on.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use megagrid_datasets::{Layout, read_samples};
use megagrid_geeps::apps::Samples;
use megagrid_partition::SplitMix;

/// Reads samples, `most` of them at most, with the features that most samples have, as mini-batches are dense; makes each of length 1,
/// and puts a fifth aside to test on.
///
/// # Errors
/// A file that cannot be read.
pub fn read(file: &Path, features: usize, most: usize) -> Result<[Samples; 2], Box<dyn std::error::Error>> {
    let read = read_samples(file, Layout::default(), &[])?;
    let (edges, labels) = (read.data.edges, read.labels);
    let mut occurrences = vec![0_usize; edges.num_right];
    edges.right.iter().for_each(|&feature| occurrences[feature as usize] += 1);
    let mut kept: Vec<u32> = (0..edges.num_right as u32).collect();
    kept.sort_by_key(|&feature| Reverse(occurrences[feature as usize]));
    kept.truncate(features);
    let places: BTreeMap<u32, u32> = kept.iter().zip(0..).map(|(&feature, place)| (feature, place)).collect();
    let mut rows = vec![Vec::new(); edges.num_left];
    for ((&sample, feature), &value) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
        rows[sample as usize].extend(places.get(feature).map(|&place| (place, value)));
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    SplitMix::new(1, 0).shuffle(&mut order);
    order.truncate(most);
    let (tested, trained) = order.split_at(order.len() / 5);
    let part = |part: &[usize]| {
        let (mut offsets, mut features, mut values) = (vec![0], vec![], vec![]);
        for &sample in part {
            let length = rows[sample].iter().map(|(_, value)| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            features.extend(rows[sample].iter().map(|&(feature, _)| feature));
            values.extend(rows[sample].iter().map(|&(_, value)| value / length));
            offsets.push(features.len());
        }
        let classes = part.iter().map(|&sample| labels.of[sample]).collect();
        Samples::new([places.len(), labels.classes.len()], offsets, features, values, classes)
    };
    Ok([part(trained)?, part(tested)?])
}
