//! The branches of a run by number: one is in the engine, the others are beside it.

use megagrid_stages::Program;

use crate::{Branch, Engine, Error};

/// An engine and its branches.
pub struct Branches<P: Program> {
    engine: Engine<P>,
    /// The branch in the engine; `None` when it was freed there.
    current: Option<u64>,
    others: Vec<(u64, Branch<P>)>,
}

impl<P: Program> Branches<P> {
    /// Begins with what is in the engine as the branch `first`.
    #[must_use]
    pub fn new(engine: Engine<P>, first: u64) -> Self {
        Self { engine, current: Some(first), others: Vec::new() }
    }

    /// Returns the engine, with the branch that was selected or forked last in it.
    pub fn engine(&mut self) -> &mut Engine<P> {
        &mut self.engine
    }

    /// Brings a branch into the engine.
    ///
    /// # Errors
    /// No such branch; see [`Engine::switch`].
    pub fn select(&mut self, branch: u64) -> Result<&mut Engine<P>, Error> {
        if self.current != Some(branch) {
            let mut other = self.take(branch)?;
            self.engine.switch(&mut other)?;
            match self.current.replace(branch) {
                Some(current) => self.others.push((current, other)),
                None => self.engine.free(other),
            }
        }
        Ok(&mut self.engine)
    }

    /// Copies a branch to another, which is then in the engine.
    ///
    /// # Errors
    /// No such branch; see [`Engine::fork`].
    pub fn fork(&mut self, parent: u64, child: u64) -> Result<&mut Engine<P>, Error> {
        let copy = self.select(parent)?.fork()?;
        self.others.push((parent, copy));
        self.current = Some(child);
        Ok(&mut self.engine)
    }

    /// Ends a branch. Its memory serves the next one.
    ///
    /// # Errors
    /// No such branch.
    pub fn free(&mut self, branch: u64) -> Result<(), Error> {
        if self.current == Some(branch) {
            self.current = None;
        } else {
            let other = self.take(branch)?;
            self.engine.free(other);
        }
        Ok(())
    }

    /// Takes a branch that is beside the engine.
    fn take(&mut self, branch: u64) -> Result<Branch<P>, Error> {
        let at = self.others.iter().position(|(other, _)| *other == branch).ok_or(Error::NoBranch(branch))?;
        Ok(self.others.swap_remove(at).1)
    }
}
