//! A table: the server's rows, the process's cache of them, and its log of changes.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use megagrid_partition::parallel::lock;

use crate::Error;
use crate::rows::Rows;
use crate::server::{Element, Table};
use crate::store::{Client, TabletsClient, Usage};

/// Locks that rows are spread over.
const STRIPES: usize = 64;

/// A row in the cache, and the clocks whose changes it has of all workers.
struct Cached<T> {
    clock: u64,
    values: Vec<T>,
}

/// A row's changes: each column has a cell of its own.
type Changes<T> = BTreeMap<i32, Box<T>>;

struct Stripe<T> {
    server: HashMap<usize, Vec<T>>,
    cache: HashMap<usize, Cached<T>>,
    log: HashMap<usize, Changes<T>>,
    /// Memory is not in it.
    usage: Usage,
}

impl<T: Element> Stripe<T> {
    fn new() -> Self {
        Self { server: HashMap::new(), cache: HashMap::new(), log: HashMap::new(), usage: Usage::default() }
    }

    fn keep(&mut self, row: usize, clock: u64, mut values: Vec<T>) {
        for (&column, change) in self.log.get(&row).into_iter().flatten() {
            values[column as usize].merge(change);
        }
        self.cache.insert(row, Cached { clock, values });
    }
}

/// A table of any rows.
pub(super) trait Erased: Any + Send + Sync {
    /// Brings the log to the server.
    fn flush(&self);
    /// Brings the log to servers elsewhere.
    fn flush_to(&self, servers: &mut TabletsClient) -> Result<(), Error>;
    /// Adds what it used.
    fn add_to(&self, usage: &mut Usage);
}

pub(super) struct NaiveTable<T> {
    table: Table<T>,
    stripes: Vec<Mutex<Stripe<T>>>,
}

impl<T: Element> NaiveTable<T> {
    pub fn new(table: Table<T>) -> Self {
        Self { table, stripes: (0..STRIPES).map(|_| Mutex::new(Stripe::new())).collect() }
    }

    pub fn set(&self, row: usize, values: &[T]) {
        lock(&self.stripes[row % STRIPES]).server.insert(row, values.to_vec());
    }

    pub fn all(&self, rows: usize) -> Rows<T> {
        let mut rows = Rows::zeros(rows, self.table.row_len());
        for stripe in &self.stripes {
            for (&row, values) in &lock(stripe).server {
                rows.row_mut(row).copy_from_slice(values);
            }
        }
        rows
    }

    /// Reads a row if it is cached and has the changes of enough clocks.
    pub fn read_cached(&self, row: usize, needed: u64, clock: u64, into: &mut [T]) -> bool {
        let stripe = &mut *lock(&self.stripes[row % STRIPES]);
        match stripe.cache.get(&row).filter(|cached| cached.clock >= needed) {
            Some(cached) => {
                into.copy_from_slice(&cached.values);
                *stripe.usage.staleness.entry(cached.clock as i64 - clock as i64).or_insert(0) += 1;
                true
            }
            None => false,
        }
    }

    /// Fetches a row from the server, which has the changes of enough clocks, and adds what is in the log.
    pub fn fetch(&self, row: usize, clock: u64) {
        let stripe = &mut *lock(&self.stripes[row % STRIPES]);
        let values = stripe.server.get(&row).cloned().unwrap_or_else(|| vec![T::IDENTITY; self.table.row_len()]);
        stripe.usage.sent_bytes += (16 + 16 + self.table.row_len() * size_of::<T>()) as u64;
        stripe.usage.messages += 2;
        stripe.keep(row, clock, values);
    }

    /// Keeps a row that a server elsewhere sent, with what is in the log.
    pub fn keep(&self, row: usize, clock: u64, values: Vec<T>) {
        lock(&self.stripes[row % STRIPES]).keep(row, clock, values);
    }

    /// Updates a row, in the log and in the cache.
    pub fn update(&self, row: usize, by: &[T]) {
        let stripe = &mut *lock(&self.stripes[row % STRIPES]);
        let changes = stripe.log.entry(row).or_default();
        for (column, by) in by.iter().enumerate() {
            changes.entry(column as i32).or_insert_with(|| Box::new(T::IDENTITY)).merge(by);
        }
        if let Some(cached) = stripe.cache.get_mut(&row) {
            cached.values.iter_mut().zip(by).for_each(|(value, by)| value.merge(by));
        }
    }
}

impl<T: Element> Erased for NaiveTable<T> {
    fn flush(&self) {
        for stripe in &self.stripes {
            let stripe = &mut *lock(stripe);
            for (row, changes) in stripe.log.drain() {
                stripe.usage.sent_bytes += (8 + 8.max(size_of::<T>()) * changes.len()) as u64;
                let values = stripe.server.entry(row).or_insert_with(|| vec![T::IDENTITY; self.table.row_len()]);
                changes.into_iter().for_each(|(column, change)| values[column as usize].merge(&change));
            }
            stripe.usage.messages += 1;
        }
    }

    fn flush_to(&self, servers: &mut TabletsClient) -> Result<(), Error> {
        let mut by = vec![T::IDENTITY; self.table.row_len()];
        for stripe in &self.stripes {
            for (row, changes) in lock(stripe).log.drain() {
                by.fill(T::IDENTITY);
                changes.into_iter().for_each(|(column, change)| by[column as usize] = *change);
                servers.update(self.table, row, &by)?;
            }
        }
        Ok(())
    }

    fn add_to(&self, usage: &mut Usage) {
        for stripe in &self.stripes {
            let stripe = lock(stripe);
            let row = self.table.row_len() * size_of::<T>() + 48;
            usage.sent_bytes += stripe.usage.sent_bytes;
            usage.messages += stripe.usage.messages;
            usage.memory_bytes += ((stripe.server.len() + stripe.cache.len()) * row) as u64;
            for (&age, &reads) in &stripe.usage.staleness {
                *usage.staleness.entry(age).or_insert(0) += reads;
            }
        }
    }
}
