//! The grid engine: memory, plan, schedule and workers
