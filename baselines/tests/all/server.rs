//! The parameter server as its users see it: what reads may return, and that nothing is lost.

use std::thread;
use std::time::Duration;

use megagrid_baselines::Error;
use megagrid_baselines::server::{
    CONTENTION_BOUND, Client, Element, Gather, Options, Preset, ServerOptions, Specializations, Statistics, Table,
    Tables, TabletServer, ThreadCache, Worker,
};
use proptest::prelude::*;

/// Servers of some machines and the client processes of a job, all in this process.
pub fn start(tables: &Tables, machines: usize, options: &[Options]) -> (Vec<TabletServer>, Vec<Client>) {
    let partitions = options[0].partitions;
    let servers = machines * partitions;
    let start = |server| {
        let options = ServerOptions { partitions, ..ServerOptions::new(server, servers, options.len()) };
        TabletServer::start("127.0.0.1:0", tables, options)
    };
    let servers: Vec<TabletServer> = (0..servers).map(|server| start(server).unwrap()).collect();
    let addresses: Vec<_> = servers.iter().map(TabletServer::address).collect();
    let clients = options.iter().map(|options| Client::connect(&addresses, tables, options.clone()).unwrap());
    let clients = clients.collect();
    (servers, clients)
}

/// Runs all workers, each in a thread.
pub fn each(clients: &[Client], work: impl Fn(Worker) + Sync) {
    thread::scope(|scope| {
        for worker in clients.iter().flat_map(Client::workers) {
            let work = &work;
            scope.spawn(move || work(worker));
        }
    });
}

/// Options of `clients` processes of a preset.
pub fn options(preset: Preset, clients: usize, threads: usize, machines: usize, slack: u32) -> Vec<Options> {
    let of =
        |client| Options { client, clients, own_server: client % machines, ..Options::preset(preset, threads, slack) };
    (0..clients).map(of).collect()
}

/// Numbers that are not random, for delays.
fn scrambled(seed: u64, index: u64) -> u64 {
    let mut x = seed.wrapping_add(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}

/// One job of the staleness test.
#[derive(Debug, Clone)]
struct Job {
    preset: Preset,
    clients: usize,
    threads: usize,
    machines: usize,
    /// Servers of each.
    partitions: usize,
    slack: u32,
    clocks: u32,
    /// How accesses are gathered, for how many clocks, and how many of the rows are left out.
    gather: Option<(Gather, u32, u32)>,
    specializations: Specializations,
    /// About how many rows are cached, where that can be bounded.
    cached_rows: Option<usize>,
    seed: u64,
}

const ROWS: u32 = 7;

impl Job {
    fn options(&self) -> Vec<Options> {
        let mut all = options(self.preset, self.clients, self.threads, self.machines, self.slack);
        for options in &mut all {
            options.specializations = self.specializations.clone();
            options.partitions = self.partitions;
            let is_pulled = !options.push && !options.specializations.static_structures;
            options.cached_rows = self.cached_rows.filter(|_| is_pulled);
        }
        all
    }

    /// Every worker adds 1 to an entry of its own in each row, once a clock, and checks what it sees of the others: entry w
    /// is how many clocks of worker w a read contains. Delays make some workers late.
    fn run(&self) {
        let workers = self.clients * self.threads;
        let mut tables = Tables::new();
        let progress = tables.add::<i32>(workers);
        let (_servers, clients) = start(&tables, self.machines, &self.options());
        each(&clients, |mut worker| self.work(&mut worker, progress));
        for client in &clients {
            let all = client.read_table(progress, self.clocks).unwrap();
            assert_eq!(all.rows, (0..ROWS).collect::<Vec<_>>(), "{self:?}");
            let clocks_of = |row| (self.clocks - self.first_clock(row)) as i32;
            let expected: Vec<i32> = (0..ROWS).flat_map(|row| vec![clocks_of(row); workers]).collect();
            assert_eq!(all.values, expected, "{self:?}");
        }
        let mut sum = Statistics::default();
        clients.iter().for_each(|client| sum.add(&client.statistics()));
        assert_eq!(sum.staleness.iter().sum::<u64>(), sum.reads);
        assert!(sum.staleness.len() <= self.slack as usize + 1, "staleness within the slack: {:?}", sum.staleness);
    }

    /// The clock in which a row is first used: rows that are left out are not used while accesses are gathered.
    fn first_clock(&self, row: u32) -> u32 {
        match self.gather {
            Some((Gather::Real, clocks, left_out)) if row < left_out => clocks,
            _ => 0,
        }
    }

    fn work(&self, worker: &mut Worker, progress: Table<i32>) {
        let me = worker.index();
        let mut delta = vec![0; self.clients * self.threads];
        delta[me] = 1;
        if let Some((Gather::Virtual, clocks, left_out)) = self.gather {
            worker.start_gather(Gather::Virtual);
            for _ in 0..clocks {
                for row in left_out..ROWS {
                    worker.read(progress, row, self.slack).unwrap();
                    worker.update(progress, row, &delta).unwrap();
                }
                worker.clock().unwrap();
            }
            worker.finish_gather().unwrap();
        }
        for clock in 0..self.clocks {
            match self.gather {
                Some((Gather::Real, _, _)) if clock == 0 => worker.start_gather(Gather::Real),
                Some((Gather::Real, clocks, _)) if clock == clocks => worker.finish_gather().unwrap(),
                _ => {}
            }
            for row in (0..ROWS).filter(|&row| self.first_clock(row) <= clock) {
                let late = scrambled(self.seed, u64::from(clock) * 64 + me as u64) % 700;
                thread::sleep(Duration::from_micros(late));
                let used = (clock - self.first_clock(row)) as i32;
                let seen = worker.read(progress, row, self.slack).unwrap();
                assert_eq!(seen[me], used, "worker {me} reads its own updates of row {row} in clock {clock}: {self:?}");
                let fresh = seen.iter().all(|&count| count >= used - self.slack as i32);
                assert!(fresh, "worker {me} in clock {clock} saw {seen:?} of row {row}: {self:?}");
                worker.update(progress, row, &delta).unwrap();
                assert_eq!(worker.read(progress, row, self.slack).unwrap()[me], used + 1);
            }
            worker.clock().unwrap();
        }
    }
}

fn specializations() -> impl Strategy<Value = Specializations> {
    let cache = prop_oneof![
        Just(ThreadCache::Off),
        (1usize..9).prop_map(|capacity| ThreadCache::Lru { capacity }),
        (0usize..9).prop_map(|capacity| ThreadCache::Static { capacity, contention_bound: CONTENTION_BOUND }),
    ];
    let early = prop::sample::select(vec![0.0, 0.1, 0.5]);
    (any::<bool>(), any::<bool>(), cache, early).prop_map(
        |(static_structures, placement, thread_cache, early_ratio)| Specializations {
            static_structures,
            placement,
            thread_cache,
            early_ratio,
            numa: false,
        },
    )
}

fn jobs() -> impl Strategy<Value = Job> {
    let sizes = (1usize..4, 1usize..4, (1usize..4, 1usize..3), 0u32..4, 1u32..5);
    let how = prop::sample::select(vec![Gather::Virtual, Gather::Real]);
    let gather = prop::option::of((how, 1u32..3, 0u32..4));
    let preset = prop::sample::select(Preset::ALL.to_vec());
    let cached = prop::option::of(0usize..6);
    (preset, sizes, gather, (specializations(), cached), any::<u64>()).prop_map(
        |(preset, (clients, threads, servers, slack, clocks), gather, (specializations, cached_rows), seed)| {
            let clocks = clocks + gather.map_or(0, |gather| gather.1 + 2);
            let (machines, partitions) = servers;
            Job {
                preset,
                clients,
                threads,
                machines,
                partitions,
                slack,
                clocks,
                gather,
                specializations,
                cached_rows,
                seed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_read_contains_what_its_slack_promises(job in jobs()) {
        job.run();
    }
}

/// Rows in turn, far more than are cached, as in a job whose model does not fit the memory of a machine.
#[test]
fn a_bounded_cache_has_few_rows_and_loses_nothing() {
    let (rows, clocks, most) = (20_000, 3, 500);
    let mut tables = Tables::new();
    let sums = tables.add::<i64>(4);
    let mut options = options(Preset::LazyTable, 2, 2, 2, 0);
    options.iter_mut().for_each(|options| options.cached_rows = Some(most));
    let (_servers, clients) = start(&tables, 2, &options);
    each(&clients, |mut worker| {
        for clock in 0..clocks {
            for row in (worker.index() as u32..rows).step_by(4) {
                assert_eq!(worker.read(sums, row, 0).unwrap(), [i64::from(clock); 4]);
                // What servers have not confirmed stays: little of it here.
                if row % 64 < 4 || clock == 0 && row % 8 < 4 {
                    worker.update(sums, row, &[0; 4]).unwrap();
                }
            }
            worker.clock().unwrap();
            for row in (worker.index() as u32..rows).step_by(4) {
                worker.update(sums, row, &[1; 4]).unwrap();
            }
            worker.clock().unwrap();
            worker.clock().unwrap();
        }
        for _ in 0..2 {
            for row in (worker.index() as u32..rows).step_by(4) {
                assert_eq!(worker.read(sums, row, 0).unwrap(), [i64::from(clocks); 4]);
            }
            worker.clock().unwrap();
        }
    });
    for client in &clients {
        assert!(client.cached_rows() < 3 * most, "{} rows, and {most} are enough", client.cached_rows());
        assert!(client.read_table(sums, 3 * clocks + 2).unwrap().values.iter().all(|&sum| sum == i64::from(clocks)));
    }
}

#[test]
fn what_is_pushed_or_laid_out_has_no_bound() {
    for preset in [Preset::Essp, Preset::IterStore] {
        let options = Options { cached_rows: Some(10), ..Options::preset(preset, 1, 0) };
        let tables = Tables::new();
        let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(0, 1, 1)).unwrap();
        let refused = Client::connect(&[server.address()], &tables, options).map(drop).unwrap_err();
        assert!(refused.to_string().contains("bound on cached rows"), "{refused}");
    }
}

/// Each partition of the keys has a server on each machine; placement keeps a row in its partition, on the machine that uses it.
#[test]
fn rows_are_placed_within_their_partition() {
    let mut tables = Tables::new();
    let sums = tables.add::<i32>(1);
    let mut options = options(Preset::IterStore, 2, 2, 2, 0);
    options.iter_mut().for_each(|options| options.partitions = 3);
    let (servers, clients) = start(&tables, 2, &options);
    each(&clients, |mut worker| {
        let client = worker.index() as u32 / 2;
        worker.start_gather(Gather::Real);
        for clock in 0..4 {
            // The first process uses nine rows, the second the four after them.
            for row in if client == 0 { 0..9 } else { 9..13 } {
                worker.read(sums, row, 0).unwrap();
                worker.update(sums, row, &[1]).unwrap();
            }
            worker.clock().unwrap();
            if clock == 0 {
                worker.finish_gather().unwrap();
            }
        }
    });
    let found = clients[0].read_table(sums, 4).unwrap();
    assert_eq!((found.rows, found.values), ((0..13).collect(), vec![8; 13]));
    // Of rows 9 to 12 two are of partition 0.
    assert_eq!(servers.iter().map(TabletServer::num_rows).collect::<Vec<_>>(), [3, 3, 3, 2, 1, 1]);
    let wrong = Client::connect(&[servers[0].address()], &tables, Options { partitions: 2, ..options[0].clone() });
    let error = wrong.unwrap_err().to_string();
    assert!(error.contains("1 servers and 2 partitions; every machine has a server for each partition"), "{error}");
}

#[test]
fn no_update_is_lost_with_64_threads() {
    let (clocks, rows) = (5, 97);
    for preset in Preset::ALL {
        let mut tables = Tables::new();
        let sums = tables.add::<i64>(3);
        let (_servers, clients) = start(&tables, 2, &options(preset, 4, 16, 2, 2));
        each(&clients, |mut worker| {
            let value = worker.index() as i64 + 1;
            for _ in 0..clocks {
                for row in 0..rows {
                    worker.update(sums, row, &[value, -value, 1]).unwrap();
                }
                worker.read(sums, value as u32 % rows, 2).unwrap();
                worker.clock().unwrap();
            }
        });
        let expected = [65 * 32 * i64::from(clocks), -65 * 32 * i64::from(clocks), 64 * i64::from(clocks)];
        let all = clients[3].read_table(sums, clocks).unwrap();
        assert_eq!(all.rows.len(), rows as usize);
        assert!(all.values.chunks(3).all(|row| row == expected), "{preset:?}: {:?}", &all.values[..3]);
    }
}

/// Rows long enough for several messages, and tables of several kinds: what arrives is what was sent, however rows travel.
#[test]
fn long_rows_and_many_rows_arrive_whole() {
    #[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Extent {
        low: i16,
        high: i16,
        count: u16,
    }
    impl Element for Extent {
        const NAME: &'static str = "extent (union)";
        const IDENTITY: Self = Self { low: i16::MAX, high: i16::MIN, count: 0 };
        fn merge(&mut self, delta: &Self) {
            *self = Self {
                low: self.low.min(delta.low),
                high: self.high.max(delta.high),
                count: self.count.wrapping_add(delta.count),
            };
        }
    }
    let mut tables = Tables::new();
    let (long, many) = (tables.add::<f64>(50_001), tables.add::<Extent>(1));
    let rows: Vec<u32> = (0..20_000).map(|row| row * 3).collect();
    for specializations in [Specializations::none(), Specializations::all(100)] {
        let mut options = options(Preset::IterStore, 2, 2, 2, 0);
        options.iter_mut().for_each(|options| options.specializations = specializations.clone());
        let (_servers, clients) = start(&tables, 2, &options);
        each(&clients, |mut worker| {
            let me = worker.index() as i16;
            let ones = vec![1.0; long.row_len()];
            let iteration = |worker: &mut Worker, clock: u32| {
                for row in 0..9 {
                    let value = worker.read(long, row, 0).unwrap();
                    assert!(value.iter().all(|&value| value == value.trunc() && value >= f64::from(4 * clock)));
                    worker.update(long, row, &ones).unwrap();
                }
                // Each worker skips rows of its own.
                for &row in rows.iter().filter(|&&row| row % 4 != me as u32) {
                    worker.read(many, row, 0).unwrap();
                    worker.update(many, row, &[Extent { low: -me, high: me, count: 1 }]).unwrap();
                }
                worker.clock().unwrap();
            };
            worker.start_gather(Gather::Real);
            iteration(&mut worker, 0);
            worker.finish_gather().unwrap();
            (1..3).for_each(|clock| iteration(&mut worker, clock));
        });
        let sums = clients[1].read_table(long, 3).unwrap();
        assert_eq!((sums.rows, sums.values), ((0..9).collect(), vec![12.0; 9 * long.row_len()]));
        let extents = clients[0].read_table(many, 3).unwrap();
        assert_eq!(extents.rows, rows);
        for (&row, extent) in rows.iter().zip(&extents.values) {
            let me = (0..4).rev().find(|me| row % 4 != *me as u32).unwrap();
            assert_eq!(*extent, Extent { low: -me, high: me, count: 9 }, "row {row}");
        }
    }
}

/// Rows that are read though their updates alone were reported, or nothing, are requested one by one, and later together; also those that
/// one thread reads when another is already in the next clock and has made the requests for it.
#[test]
fn rows_whose_reads_were_not_reported_are_prefetched_later() {
    let mut tables = Tables::new();
    let table = tables.add::<i32>(1);
    let (_servers, clients) = start(&tables, 1, &options(Preset::IterStore, 1, 2, 1, 0));
    let (mut ahead, mut behind) = (clients[0].worker(0).unwrap(), clients[0].worker(1).unwrap());
    let update = |worker: &mut Worker, rows: u32| (0..rows).for_each(|row| worker.update(table, row, &[1]).unwrap());
    std::thread::scope(|scope| {
        for worker in [&mut ahead, &mut behind] {
            scope.spawn(move || {
                worker.start_gather(Gather::Virtual);
                update(worker, 200);
                worker.clock().unwrap();
                worker.finish_gather().unwrap();
            });
        }
    });
    let mut sent = Vec::new();
    for clock in 0..4 {
        let before = clients[0].statistics().sent_messages;
        update(&mut ahead, 400);
        ahead.clock().unwrap();
        (0..400).for_each(|row| assert!(behind.read(table, row, 0).unwrap()[0] >= 2 * clock));
        update(&mut behind, 400);
        behind.clock().unwrap();
        sent.push(clients[0].statistics().sent_messages - before);
    }
    assert!(sent[0] >= 400 && sent[2..].iter().all(|&sent| sent < 20), "messages by clock: {sent:?}");
}

#[test]
fn initial_values_are_what_is_read() {
    let mut tables = Tables::new();
    let (first, second) = (tables.add::<f32>(2), tables.add::<f64>(1));
    let (_servers, clients) = start(&tables, 2, &options(Preset::LazyTable, 2, 1, 2, 0));
    clients[0].store(first, &[1, 4_000_000_000], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    clients[1].store(second, &[1], &[5.0]).unwrap();
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| client.barrier().unwrap());
        }
    });
    let mut worker = clients[1].worker(0).unwrap();
    assert_eq!(worker.read(first, 4_000_000_000, 0).unwrap(), [3.0, 4.0]);
    assert_eq!(worker.read(first, 3, 0).unwrap(), [0.0, 0.0], "a row that nobody updated");
    let mut both = [0.0; 4];
    worker.read_rows(first, &[4_000_000_000, 1], 0, &mut both).unwrap();
    assert_eq!(both, [3.0, 4.0, 1.0, 2.0]);
    assert_eq!(worker.read(second, 1, 0).unwrap(), [5.0]);
}

#[test]
fn tables_and_lengths_are_checked() {
    let mut tables = Tables::new();
    let table = tables.add::<f32>(3);
    let (_servers, clients) = start(&tables, 1, &options(Preset::Essp, 1, 1, 1, 0));
    let mut worker = clients[0].worker(0).unwrap();
    assert!(matches!(worker.update(table, 0, &[1.0]), Err(Error::RowLength { found: 1, .. })));
    assert!(matches!(clients[0].worker(0), Err(Error::Options(_))));
    let mut others = Tables::new();
    let other = others.add::<i32>(3);
    assert!(matches!(worker.read(other, 0, 0), Err(Error::OtherRows { .. })));
    let unknown: Table<f32> = others.add(3);
    assert!(matches!(worker.read(unknown, 0, 0), Err(Error::UnknownTable { table: 1, tables: 1 })));
}
