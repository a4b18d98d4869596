//! Frames between the processes of a run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_fuzz::seed;

#[allow(dead_code, reason = "only what reads is called")]
#[path = "../../engine/src/cluster/frame.rs"]
mod frame;

use frame::{Hello, Message, Purpose};

fn seeds() -> Vec<Vec<u8>> {
    let addresses = vec!["a:1".to_owned(), "b:2".to_owned()];
    let purpose = Purpose::Data { job: 1, run: 2 };
    let messages = [
        Message::Hello(Hello { version: "1".to_owned(), process: 1, addresses, purpose }),
        Message::Refused("no".to_owned()),
        Message::Part { collective: 3, from: 2, total: 5 },
    ];
    let bytes = |message| {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, message, b"body").map(|()| bytes)
    };
    messages.iter().filter_map(|message| bytes(message).ok()).collect()
}

fuzz_target!(
    init: seed(&seeds()),
    |bytes: &[u8]| {
        let mut rest = bytes;
        while let Ok((_, body)) = frame::read(&mut rest) {
            assert!(body <= frame::MAX_BYTES);
            rest = rest.get(body..).unwrap_or_default();
        }
    }
);
