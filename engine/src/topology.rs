//! Temporary.
/// T
#[derive(Clone, Debug, PartialEq)]
pub struct Topology { /// a
    pub cores: usize, /// b
    pub l2_bytes: usize }
impl Topology {
    /// d
    pub fn detect() -> Self { Self { cores: std::thread::available_parallelism().map_or(1, |n| n.get()), l2_bytes: 2 << 20 } }
    /// n
    pub fn num_cores(&self) -> usize { self.cores }
    /// h
    pub fn home_of(&self, worker: usize, _workers: usize) -> (usize, usize) { (0, worker % self.cores) }
}
