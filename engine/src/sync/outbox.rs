//! What a worker is about to send, and where it goes in.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use timely::communication::Push;

use super::message::{Kind, Message, Parcel};
use crate::plan::Traffic;

/// Messages of a step are sent together up to about this many bytes, which transports carry best.
const PARCEL_BYTES: u64 = 128 << 10;

#[derive(Default)]
pub struct Outbox {
    messages: RefCell<Vec<Message>>,
    /// Whether urgent ones may wait.
    is_patient: bool,
    /// Whether one of them is urgent, and the bytes of all.
    is_urgent: Cell<bool>,
    waiting_bytes: Cell<u64>,
    /// What was put in since that was last asked for.
    sent: Cell<Traffic>,
    /// Where what is full goes.
    senders: OnceCell<Rc<Senders>>,
}

impl Outbox {
    /// Begins empty; a patient one lets urgent messages wait for others.
    pub fn new(is_patient: bool) -> Self {
        Self { is_patient, ..Self::default() }
    }

    /// Sends what is full from now on while a task still puts more in, so that packing and transfer overlap. What is put in
    /// last waits until the task has ended: the last slice of a rotating shard says that the visit has.
    pub fn connect(&self, senders: Rc<Senders>) {
        let _ = self.senders.set(senders);
    }

    /// Puts a message in. Rows that it was lent stay as they are for this step.
    pub fn put(&self, mut message: Message) {
        match self.senders.get() {
            Some(senders) if self.is_full() => self.parcels().for_each(|parcel| senders.send(parcel)),
            Some(_) => {}
            // Where time is modelled, it leaves later.
            None => message.body.own(),
        }
        let bytes = message.wire_bytes() as u64;
        self.sent.set(with(self.sent.get(), &message));
        self.waiting_bytes.set(self.waiting_bytes.get() + bytes);
        self.is_urgent.set(self.is_urgent.get() || message.is_urgent() && !self.is_patient);
        self.messages.borrow_mut().push(message);
    }

    fn is_full(&self) -> bool {
        self.waiting_bytes.get() >= PARCEL_BYTES
    }

    /// Tells whether messages are worth sending before the step ends.
    pub fn is_due(&self) -> bool {
        self.is_urgent.get() || self.is_full()
    }

    /// Takes all messages out, those for one worker together.
    pub fn parcels(&self) -> impl Iterator<Item = Parcel> + use<> {
        self.is_urgent.set(false);
        self.waiting_bytes.set(0);
        let mut messages = std::mem::take(&mut *self.messages.borrow_mut());
        messages.sort_by_key(|message| message.to);
        std::iter::from_fn(move || {
            let to = messages.first()?.to;
            let rest = messages.split_off(messages.partition_point(|message| message.to == to));
            Some(Parcel { messages: std::mem::replace(&mut messages, rest), ..Parcel::default() })
        })
    }

    /// Returns what was put in since this was last asked.
    pub fn take_sent(&self) -> Traffic {
        self.sent.take()
    }
}

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

/// Counts a message in what is sent.
fn with(mut sent: Traffic, message: &Message) -> Traffic {
    let amount = match message.kind {
        Kind::Empty => return sent,
        Kind::Rows => &mut sent.rows,
        Kind::Deltas => &mut sent.deltas,
        Kind::Shard => &mut sent.shards,
        Kind::Sums => &mut sent.sums,
        Kind::Changes => &mut sent.changes,
        Kind::Fresh => &mut sent.fresh,
        Kind::Edges => &mut sent.edges,
    };
    amount.messages += 1;
    amount.bytes += message.wire_bytes() as u64;
    sent
}
