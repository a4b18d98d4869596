//! Files to edges: readers, the binary cache, generators with planted truth, train/test split
