//! Processes that read an input together.

use std::fmt::Debug;
use std::io;
use std::ops::AddAssign;

use bytemuck::Pod;

/// Numbers that processes sum at a time.
const SUMMED_AT_A_TIME: usize = 1 << 18;

/// Processes of which each reads a part of an input. All methods that send are collective: every process calls them,
/// in the same order.
pub trait Readers: Debug + Send + Sync {
    /// Returns this process's number, from 0.
    fn process(&self) -> usize;

    /// Returns the number of processes.
    fn processes(&self) -> usize;

    /// Gives everybody what each has, in the order of processes.
    ///
    /// # Errors
    /// A lost process.
    fn all_gather(&self, mine: Vec<u8>) -> io::Result<Vec<Vec<u8>>>;

    /// Sends each process its part; returns what each sent to this one, in the order of processes.
    ///
    /// # Errors
    /// A lost process.
    fn exchange(&self, parts: Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>>;

    /// Takes note of bytes that this process has read from the input.
    fn has_read(&self, bytes: u64);

    /// Returns how many these are so far.
    fn read_bytes(&self) -> u64;
}

impl dyn Readers + '_ {
    /// Gives everybody the numbers that each has; every process has equally many.
    pub(crate) fn gather_numbers<const N: usize>(&self, mine: [u64; N]) -> io::Result<Vec<[u64; N]>> {
        let all = self.all_gather(bytemuck::pod_collect_to_vec(&mine))?;
        let numbers = |bytes: &Vec<u8>| <[u64; N]>::try_from(&bytemuck::pod_collect_to_vec::<u8, u64>(bytes)[..]);
        all.iter().map(|bytes| numbers(bytes).map_err(|_| misfit())).collect()
    }

    /// Adds up the numbers of all processes, in their order; every process has equally many.
    pub(crate) fn sum<N: Pod + AddAssign>(&self, numbers: &mut [N]) -> io::Result<()> {
        // A part at a time: those of all processes are in memory at once.
        for numbers in numbers.chunks_mut(SUMMED_AT_A_TIME) {
            let all = self.all_gather(bytemuck::pod_collect_to_vec(numbers))?;
            numbers.fill(N::zeroed());
            for bytes in all {
                let theirs: Vec<N> = bytemuck::pod_collect_to_vec(&bytes);
                numbers.iter_mut().zip(theirs).for_each(|(number, more)| *number += more);
            }
        }
        Ok(())
    }

    /// Gives everybody the pieces of all, process after process: `next` returns this process's next piece, which is not empty, and
    /// `take` gets each. `lost` says where that failed.
    pub(crate) fn in_turn<E>(
        &self,
        mut next: impl FnMut() -> Result<Option<Vec<u8>>, E>,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
        lost: impl Fn(io::Error) -> E,
    ) -> Result<(), E> {
        for turn in 0..self.processes() {
            loop {
                let piece = if turn == self.process() { next()?.unwrap_or_default() } else { Vec::new() };
                let arrived = self.exchange(vec![piece; self.processes()]).map_err(&lost)?;
                if arrived[turn].is_empty() {
                    break;
                }
                take(&arrived[turn])?;
            }
        }
        Ok(())
    }
}

/// What another process sent is not what was expected.
pub(crate) fn misfit() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "another process sent something else than expected")
}
