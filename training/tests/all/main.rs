//! Training: what is found against other programs and closed forms, updates, and tuned runs.

mod als;
mod classes;
mod hits;
mod tune;
mod unseen;
mod update;
