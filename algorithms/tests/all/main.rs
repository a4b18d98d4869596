//! Algorithms on the engine, beside naive programs and what is known of their results. They are one program, since each program that is
//! linked with the engine compiles it for its types again.

mod blockpg;
mod lda;
mod lda_topics;
#[path = "../../../engine/tests/all/made.rs"]
#[expect(dead_code, reason = "some of it is for the engine's tests")]
mod made;
