//! What one access to the parameter server costs, one clock, and one byte: one thread, one server, loopback.
//!
//!     cargo server-costs

use std::error::Error;
use std::time::Instant;

use megagrid_baselines::server::{
    Client, Gather, Options, Preset, ServerOptions, Specializations, Tables, TabletServer, ThreadCache, Worker,
};

/// Rows that are accessed in turn: they lie in the second-level cache.
const ROWS: u32 = 512;
const ACCESSES: u32 = 200_000;
/// Accesses that are gathered of these rows.
const GATHERED: u32 = 16 * ROWS;
const CLOCKS: u32 = 2_000;

/// Prints all of it for rows of several lengths.
fn main() -> Result<(), Box<dyn Error>> {
    println!("{:<30}{:>10}{:>12}{:>12}{:>14}{:>14}", "", "row of", "read ns", "update ns", "clock us", "refresh MB/s");
    let cached = Specializations::all(usize::MAX);
    let fixed = Specializations { thread_cache: ThreadCache::Off, ..cached.clone() };
    let settings = [
        ("thread cache", cached, Some(Gather::Virtual)),
        ("process cache, static", fixed, Some(Gather::Virtual)),
        ("process cache, hash map", Specializations::none(), None),
    ];
    // The first run of a process is slower: its memory is new.
    measure(1, &settings[0].1, settings[0].2)?;
    for row_len in [1, 50, 500] {
        for (name, specializations, gather) in &settings {
            let unit = measure(row_len, specializations, *gather)?;
            let Unit { read_ns, update_ns, clock_us, refresh_mb } = unit;
            println!("{name:<30}{row_len:>6} f32{read_ns:>12.1}{update_ns:>12.1}{clock_us:>14.1}{refresh_mb:>14.0}");
        }
    }
    Ok(())
}

struct Unit {
    read_ns: f64,
    update_ns: f64,
    /// A clock in which one row is updated, and read by the next.
    clock_us: f64,
    /// A clock in which all rows are updated and read: bytes of rows both ways.
    refresh_mb: f64,
}

fn measure(row_len: usize, specializations: &Specializations, gather: Option<Gather>) -> Result<Unit, Box<dyn Error>> {
    let mut tables = Tables::new();
    let table = tables.add::<f32>(row_len);
    let many = ((16 << 20) / (4 * row_len)).min(200_000) as u32;
    let large = tables.add::<f32>(row_len);
    let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(0, 1, 1))?;
    let options = Options { specializations: specializations.clone(), ..Options::preset(Preset::IterStore, 1, 0) };
    let client = Client::connect(&[server.address()], &tables, options)?;
    let mut worker = client.worker(0)?;
    let delta = vec![1.0; row_len];
    let all = |worker: &mut Worker| -> Result<(), megagrid_baselines::Error> {
        for row in 0..many {
            worker.read(large, row, 0)?;
            worker.update(large, row, &delta)?;
        }
        worker.clock()
    };
    if let Some(gather) = gather {
        // An iteration of two clocks: in one few rows are accessed, often enough to be cached; in the other all of a table.
        worker.start_gather(gather);
        for access in 0..GATHERED {
            worker.read(table, access % ROWS, 0)?;
            worker.update(table, access % ROWS, &delta)?;
        }
        worker.clock()?;
        all(&mut worker)?;
        worker.finish_gather()?;
    }
    let rows: Vec<u32> = (0..ROWS).collect();
    worker.refresh_rows(table, &rows, 0)?;
    for row in 0..ROWS {
        worker.read(table, row, 0)?;
    }
    let each = |begin: Instant| begin.elapsed().as_nanos() as f64 / f64::from(ACCESSES);
    let begin = Instant::now();
    let mut sum = 0.0;
    for access in 0..ACCESSES {
        sum += worker.read(table, access % ROWS, 0)?[0];
    }
    let read_ns = each(begin);
    let begin = Instant::now();
    for access in 0..ACCESSES {
        worker.update(table, access % ROWS, &delta)?;
    }
    let update_ns = each(begin);
    std::hint::black_box(sum);

    worker.clock()?;
    let rows: Vec<u32> = (0..many).collect();
    worker.refresh_rows(large, &rows, 0)?;
    all(&mut worker)?;
    let mut seconds = Vec::new();
    for _ in 0..5 {
        // The other clock of the iteration; without gathering, what was used in the clock before is prefetched.
        if gather.is_some() {
            worker.read(table, 0, 0)?;
            worker.clock()?;
        }
        let begin = Instant::now();
        all(&mut worker)?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let refresh_mb = 2.0 * f64::from(many) * row_len as f64 * 4.0 / 1e6 / seconds[2];
    drop(worker);
    drop(client);
    drop(server);
    Ok(Unit { read_ns, update_ns, clock_us: clock_us(row_len)?, refresh_mb })
}

/// A job that has one row only.
fn clock_us(row_len: usize) -> Result<f64, Box<dyn Error>> {
    let mut tables = Tables::new();
    let table = tables.add::<f32>(row_len);
    let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(0, 1, 1))?;
    let client = Client::connect(&[server.address()], &tables, Options::preset(Preset::LazyTable, 1, 0))?;
    let mut worker = client.worker(0)?;
    let delta = vec![1.0; row_len];
    let begin = Instant::now();
    for _ in 0..CLOCKS {
        worker.read(table, 0, 0)?;
        worker.update(table, 0, &delta)?;
        worker.clock()?;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(CLOCKS))
}
