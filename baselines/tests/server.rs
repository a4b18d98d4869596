//! The parameter server as its users see it: what reads may return, and that nothing is lost.

use std::thread;
use std::time::Duration;

use megagrid_baselines::Error;
use megagrid_baselines::server::{
    CONTENTION_BOUND, Client, Gather, Options, Preset, ServerOptions, Specializations, Statistics, Table, Tables,
    TabletServer, ThreadCache, Worker,
};
use proptest::prelude::*;

/// Servers and the client processes of a job, all in this process.
fn start(tables: &Tables, servers: usize, options: &[Options]) -> (Vec<TabletServer>, Vec<Client>) {
    let start = |server| TabletServer::start("127.0.0.1:0", tables, ServerOptions::new(server, servers, options.len()));
    let servers: Vec<TabletServer> = (0..servers).map(|server| start(server).unwrap()).collect();
    let addresses: Vec<_> = servers.iter().map(TabletServer::address).collect();
    let clients = options.iter().map(|options| Client::connect(&addresses, tables, options.clone()).unwrap());
    let clients = clients.collect();
    (servers, clients)
}

/// Options of `clients` processes of a preset.
fn options(preset: Preset, clients: usize, threads: usize, servers: usize, slack: u32) -> Vec<Options> {
    let of =
        |client| Options { client, clients, own_server: client % servers, ..Options::preset(preset, threads, slack) };
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
    servers: usize,
    slack: u32,
    clocks: u32,
    /// How accesses are gathered, for how many clocks, and how many of the rows are left out.
    gather: Option<(Gather, u32, u32)>,
    specializations: Specializations,
    seed: u64,
}

const ROWS: u32 = 7;

impl Job {
    fn options(&self) -> Vec<Options> {
        let mut all = options(self.preset, self.clients, self.threads, self.servers, self.slack);
        all.iter_mut().for_each(|options| options.specializations = self.specializations.clone());
        all
    }

    /// Every worker adds 1 to an entry of its own in each row, once a clock, and checks what it sees of the others: entry w
    /// is how many clocks of worker w a read contains. Delays make some workers late.
    fn run(&self) {
        let workers = self.clients * self.threads;
        let mut tables = Tables::new();
        let progress = tables.add::<i32>(workers);
        let (_servers, clients) = start(&tables, self.servers, &self.options());
        thread::scope(|scope| {
            for mut worker in clients.iter().flat_map(Client::workers) {
                scope.spawn(move || self.work(&mut worker, progress));
            }
        });
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
        },
    )
}

fn jobs() -> impl Strategy<Value = Job> {
    let sizes = (1usize..4, 1usize..4, 1usize..4, 0u32..4, 1u32..5);
    let how = prop::sample::select(vec![Gather::Virtual, Gather::Real]);
    let gather = prop::option::of((how, 1u32..3, 0u32..4));
    let preset = prop::sample::select(Preset::ALL.to_vec());
    (preset, sizes, gather, specializations(), any::<u64>()).prop_map(
        |(preset, (clients, threads, servers, slack, clocks), gather, specializations, seed)| {
            let clocks = clocks + gather.map_or(0, |gather| gather.1 + 2);
            Job { preset, clients, threads, servers, slack, clocks, gather, specializations, seed }
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

#[test]
fn no_update_is_lost_with_64_threads() {
    let (clocks, rows) = (5, 97);
    for preset in Preset::ALL {
        let mut tables = Tables::new();
        let sums = tables.add::<i64>(3);
        let (_servers, clients) = start(&tables, 2, &options(preset, 4, 16, 2, 2));
        thread::scope(|scope| {
            for mut worker in clients.iter().flat_map(Client::workers) {
                scope.spawn(move || {
                    let value = worker.index() as i64 + 1;
                    for _ in 0..clocks {
                        for row in 0..rows {
                            worker.update(sums, row, &[value, -value, 1]).unwrap();
                        }
                        worker.read(sums, value as u32 % rows, 2).unwrap();
                        worker.clock().unwrap();
                    }
                });
            }
        });
        let expected = [65 * 32 * i64::from(clocks), -65 * 32 * i64::from(clocks), 64 * i64::from(clocks)];
        let all = clients[3].read_table(sums, clocks).unwrap();
        assert_eq!(all.rows.len(), rows as usize);
        assert!(all.values.chunks(3).all(|row| row == expected), "{preset:?}: {:?}", &all.values[..3]);
    }
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
    assert!(matches!(tables.get::<f32>(1), Err(Error::UnknownTable { table: 1, tables: 1 })));
    assert!(matches!(tables.get::<i32>(0), Err(Error::OtherRows { .. })));
    let (_servers, clients) = start(&tables, 1, &options(Preset::Essp, 1, 1, 1, 0));
    let mut worker = clients[0].worker(0).unwrap();
    assert!(matches!(worker.update(table, 0, &[1.0]), Err(Error::RowLength { found: 1, .. })));
    assert!(matches!(clients[0].worker(0), Err(Error::Options(_))));
    let mut others = Tables::new();
    others.add::<f32>(3);
    let unknown: Table<f32> = others.add(3);
    assert!(matches!(worker.read(unknown, 0, 0), Err(Error::UnknownTable { table: 1, .. })));
}
