//! Frames between a parameter server and its clients.
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use megagrid_fuzz::seed;

#[allow(dead_code, unused_imports, reason = "only what reads is called")]
#[path = "../../baselines/src/server/frame.rs"]
mod frame;

use frame::{Frame, MAX_FRAME_BYTES, Verb};

/// The errors of the crate that reading a frame makes.
#[derive(Debug)]
#[allow(dead_code, reason = "nobody looks at them")]
pub enum Error {
    Io(io::Error),
    Message { peer: String, what: String },
}

impl Error {
    fn io(_: &str) -> impl FnOnce(io::Error) -> Self {
        Self::Io
    }

    fn unreadable(peer: &str, what: &str) -> Self {
        Self::Message { peer: peer.to_owned(), what: what.to_owned() }
    }
}

fuzz_target!(
    init: {
        let frames = [
            Frame::new(Verb::Heartbeat),
            Frame::with_rows(Verb::Update, 1, &[1, 2, 3], &[0; 12]),
            Frame::with_rows(Verb::Refused, 0, &[], b"no"),
        ];
        seed(&frames.each_ref().map(|frame| frame.bytes()));
    },
    |bytes: &[u8]| {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
        runtime.block_on(async {
            let mut rest = bytes;
            while let Ok(Some(frame)) = Frame::read(&mut rest, "peer", MAX_FRAME_BYTES).await {
                assert_eq!(frame.bytes().len(), frame.len_bytes());
                let _ = (frame.verb(), frame.rows(), frame.data(), frame.text());
            }
        });
    }
);
