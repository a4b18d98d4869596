//! Training that tunes itself: MLtuner of Cui's thesis, chapter 5. Knows its trainer by fork, schedule, free and reported
//! progress alone, so that it can drive any.
#![forbid(unsafe_code)]
