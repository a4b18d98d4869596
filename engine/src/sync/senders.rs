//! Where what a worker sends goes in.

use std::cell::{Cell, RefCell};

use timely::communication::Push;

use super::message::Parcel;

/// Where a worker's parcels go in.
pub struct Senders {
    pub to: RefCell<Vec<Box<dyn Push<Parcel>>>>,
    pub worker: u64,
    /// Steps that the worker has ended; others may know of fewer.
    pub steps: Cell<u64>,
}

impl Senders {
    /// Sends a parcel to the worker that its messages are for.
    pub fn send(&self, parcel: Parcel) {
        self.send_to(parcel.to(), parcel);
    }

    pub fn send_to(&self, to: usize, parcel: Parcel) {
        self.to.borrow_mut()[to].send(Parcel { steps: self.steps.get(), from: self.worker, ..parcel });
    }
}
