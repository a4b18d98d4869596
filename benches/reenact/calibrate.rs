//! What tasks cost, measured on the jobs of the rows.

use std::collections::BTreeMap;

use megagrid_engine::virtual_cluster::{Calibration, Costs};

use crate::job::{CALIBRATION, Shape};
use crate::rows;
use megagrid_benches::findings::root;

/// Measures what tasks of all jobs cost, and writes it down.
pub fn calibrate() {
    let mut stages = BTreeMap::new();
    for slack in [0, 2] {
        let shape = Shape { slack, ..Shape::of(Costs::Measured) };
        let ran = [
            rows::slack::factorization(16).run(&rows::slack::ratings(), &shape),
            rows::slack::selection(20).run(&rows::slack::samples(), &shape),
            rows::work::topics(16).run(&rows::work::documents(), &shape),
        ];
        ran.into_iter().for_each(|ran| stages.extend(ran.calibration.stages));
    }
    let text = serde_json::to_string_pretty(&Calibration { stages }).expect("numbers");
    let path = root().join(CALIBRATION);
    std::fs::write(&path, text + "\n").expect("a directory that can be written to");
    println!("{} written", path.display());
}
