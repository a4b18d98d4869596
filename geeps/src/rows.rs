//! Loops over rows that devices and host have in common: sums in a fixed order, so that they give the same bits
//! everywhere.

use crate::Error;

/// Copies rows of a table.
pub(crate) fn gather(table: &[f32], keys: &[u32], width: usize) -> Vec<f32> {
    keys.iter().flat_map(|&key| &table[key as usize * width..][..width]).copied().collect()
}

/// Adds values one by one.
pub(crate) fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// Adds the sums of a batch's rows to rows of a table; those of a segment are summed one after the other: `[targets, starts, rows]`.
pub(crate) fn scatter_add(from: &[f32], [targets, starts, rows]: [&[u32]; 3], table: &mut [f32], width: usize) {
    let mut sum = vec![0.0; width];
    for (&target, bounds) in targets.iter().zip(starts.windows(2)) {
        sum.fill(0.0);
        for &at in &rows[bounds[0] as usize..bounds[1] as usize] {
            add(&mut sum, &from[at as usize * width..][..width]);
        }
        add(&mut table[target as usize * width..][..width], &sum);
    }
}

/// Returns zeros.
///
/// # Errors
/// Memory that this machine does not have.
pub(crate) fn zeros(len: usize) -> Result<Vec<f32>, Error> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Error::HostMemory { values: len })?;
    values.resize(len, 0.0);
    Ok(values)
}
