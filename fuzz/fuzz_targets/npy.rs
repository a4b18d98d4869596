//! NumPy arrays.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::output::read_npy;
use megagrid_fuzz::{in_file, seed};

fn seeds() -> [Vec<u8>; 2] {
    [("<f4", "(2, 3)"), ("<u8", "(3,)")].map(|(kind, shape)| {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), &[7; 24]].concat()
    })
}

fuzz_target!(
    init: seed(&seeds()),
    |bytes: &[u8]| {
        in_file(bytes, "npy", |path| {
            let _ = read_npy::<f32>(path, 2);
            let _ = read_npy::<u64>(path, 1);
        });
    }
);
