//! Checkpoints of the parameter server: what they hold, and that a job goes on from them.

use megagrid_baselines::server::{
    Checkpoints, Client, Gather, Options, Preset, ServerOptions, Tables, TabletServer, newest_checkpoint,
};

use crate::server::{each, options};

/// A job that is stopped and goes on from its checkpoint ends as one that was not; rows that were placed are found again.
#[test]
fn servers_resume_from_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut tables = Tables::new();
    let sums = tables.add::<i64>(2);
    let run = |from: Option<u32>, until: u32| {
        let start = |server| {
            let checkpoints = Some(Checkpoints { folder: folder.path().into(), every: 2, pure: false });
            let resume = from.map(|clock| (folder.path().into(), clock));
            let options = ServerOptions { checkpoints, resume, ..ServerOptions::new(server, 2, 2) };
            TabletServer::start("127.0.0.1:0", &tables, options).unwrap()
        };
        let servers = [start(0), start(1)];
        let addresses = servers.each_ref().map(TabletServer::address);
        let options = options(Preset::IterStore, 2, 2, 2, 0);
        let clients = options.iter().map(|options| Client::connect(&addresses, &tables, options.clone()).unwrap());
        let clients: Vec<Client> = clients.collect();
        each(&clients, |mut worker| {
            assert_eq!(worker.current_clock(), from.unwrap_or(0));
            let rows = [worker.index() as u32, 4, 5];
            for clock in worker.current_clock()..until {
                if from.is_none() && clock == 0 {
                    worker.start_gather(Gather::Real);
                }
                for row in rows {
                    let before = worker.read(sums, row, 0).unwrap().to_vec();
                    assert!(before[0] >= i64::from(clock), "row {row} in clock {clock}: {before:?}");
                    worker.update(sums, row, &[1, i64::from(row)]).unwrap();
                }
                worker.clock().unwrap();
                worker.finish_gather().unwrap();
            }
        });
        let table = clients[0].read_table(sums, until).unwrap();
        let stored: Vec<usize> = servers.iter().map(TabletServer::num_rows).collect();
        drop(clients);
        (table, stored)
    };
    let (stopped, stored) = run(None, 5);
    assert_eq!(stopped.values[..4], [5, 0, 5, 5]);
    assert_eq!(stored, [3, 3], "rows 0 and 1 are used by client 0, 2 and 3 by client 1");
    // The servers write in the background, and are stopped: the newest may be of clock 2 or 4.
    let clock = newest_checkpoint(folder.path(), 2).unwrap();
    assert!(clock == 4 || clock == 2, "clock {clock}");
    let (resumed, stored) = run(Some(clock), 9);
    assert_eq!(resumed.rows, [0, 1, 2, 3, 4, 5]);
    assert_eq!(resumed.values, [9, 0, 9, 9, 9, 18, 9, 27, 36, 144, 36, 180]);
    assert_eq!(stored, [3, 3]);

    let path = folder.path().join(format!("server-0-of-2.clock-{}", newest_checkpoint(folder.path(), 2).unwrap()));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let resume = newest_checkpoint(folder.path(), 2).map(|clock| (folder.path().into(), clock));
    let error = TabletServer::start("127.0.0.1:0", &tables, ServerOptions { resume, ..ServerOptions::new(0, 2, 2) });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("its checksum does not fit; use the checkpoint that this job wrote"), "{error}");
}

/// A client is ahead of another: a pure checkpoint has only the updates of the clocks before it, an approximate one all that came.
#[test]
fn checkpoints_are_pure_where_they_are_to_be() {
    let mut tables = Tables::new();
    let sums = tables.add::<i64>(2);
    for (pure, expected) in [(true, [4, 6, 0, 2]), (false, [8, 18, 4, 6])] {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Some(Checkpoints { folder: folder.path().into(), every: 2, pure });
        let options = ServerOptions { checkpoints, ..ServerOptions::new(0, 1, 2) };
        let server = TabletServer::start("127.0.0.1:0", &tables, options).unwrap();
        let clients = [0, 1].map(|client| {
            let options = Options { client, clients: 2, ..Options::preset(Preset::LazyTable, 1, 9) };
            Client::connect(&[server.address()], &tables, options).unwrap()
        });
        let mut workers = clients.each_ref().map(|client| client.worker(0).unwrap());
        for clock in 0..6 {
            workers[0].update(sums, 0, &[1, 3]).unwrap();
            if clock >= 2 {
                workers[0].update(sums, 1, &[1, 1]).unwrap();
            }
            workers[0].clock().unwrap();
        }
        // The answer comes after all that this client sent is in.
        clients[0].read_table(sums, 0).unwrap();
        for _ in 0..2 {
            workers[1].update(sums, 0, &[1, 0]).unwrap();
            workers[1].update(sums, 1, &[0, 1]).unwrap();
            workers[1].clock().unwrap();
        }
        let begin = std::time::Instant::now();
        while newest_checkpoint(folder.path(), 1) != Some(2) {
            assert!(begin.elapsed().as_secs() < 30, "no checkpoint was written");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let resume = Some((folder.path().into(), 2));
        let again =
            TabletServer::start("127.0.0.1:0", &tables, ServerOptions { resume, ..ServerOptions::new(0, 1, 1) });
        let again = again.unwrap();
        let client = Client::connect(&[again.address()], &tables, Options::preset(Preset::LazyTable, 1, 0)).unwrap();
        let found = client.read_table(sums, 2).unwrap();
        assert_eq!((found.rows, found.values), (vec![0, 1], expected.to_vec()), "pure: {pure}");
    }
}
