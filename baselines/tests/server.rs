//! The parameter server as its users see it: what reads may return, and that nothing is lost.

use std::thread;
use std::time::Duration;

use megagrid_baselines::Error;
use megagrid_baselines::server::{Client, Options, Preset, ServerOptions, Statistics, Table, Tables, TabletServer};
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

/// Every worker adds 1 to an entry of its own, and to one of all, once a clock, and checks what it sees of the others:
/// entry w holds how many clocks of worker w a read contains. Random delays make some workers late.
fn check_staleness(
    preset: Preset,
    (clients, threads, servers): (usize, usize, usize),
    slack: u32,
    clocks: u32,
    seed: u64,
) {
    let workers = clients * threads;
    let mut tables = Tables::new();
    let progress = tables.add::<i32>(workers);
    let (_servers, clients) = start(&tables, servers, &options(preset, clients, threads, servers, slack));
    let rows: Vec<u32> = (0..5).collect();
    thread::scope(|scope| {
        for mut worker in clients.iter().flat_map(Client::workers) {
            let rows = &rows;
            scope.spawn(move || {
                let me = worker.index();
                let mut delta = vec![0; workers];
                delta[me] = 1;
                for clock in 0..clocks {
                    for &row in rows {
                        thread::sleep(Duration::from_micros(scrambled(seed, u64::from(clock) * 64 + me as u64) % 700));
                        let seen = worker.read(progress, row, slack).unwrap();
                        assert_eq!(seen[me], clock as i32, "worker {me} reads its own updates of row {row}");
                        for (other, &count) in seen.iter().enumerate() {
                            assert!(
                                count >= clock as i32 - slack as i32,
                                "{preset:?}: worker {me} in clock {clock} with slack {slack} saw {count} of {other}"
                            );
                        }
                        worker.update(progress, row, &delta).unwrap();
                        assert_eq!(worker.read(progress, row, slack).unwrap()[me], clock as i32 + 1);
                    }
                    worker.clock().unwrap();
                }
            });
        }
    });
    for client in &clients {
        let all = client.read_table(progress, clocks).unwrap();
        assert_eq!(all.rows, rows);
        assert_eq!(all.values, vec![clocks as i32; workers * rows.len()]);
    }
    let mut sum = Statistics::default();
    clients.iter().for_each(|client| sum.add(&client.statistics()));
    assert_eq!(sum.staleness.iter().sum::<u64>(), sum.reads);
    assert!(sum.staleness.len() <= slack as usize + 1, "staleness within the slack: {:?}", sum.staleness);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_read_contains_what_its_slack_promises(
        preset in prop::sample::select(Preset::ALL.to_vec()),
        clients in 1usize..4, threads in 1usize..4, servers in 1usize..4,
        slack in 0u32..4, clocks in 1u32..9, seed: u64,
    ) {
        check_staleness(preset, (clients, threads, servers), slack, clocks, seed);
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
