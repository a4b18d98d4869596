//! What a read may miss, whatever delays there are.

use std::time::Duration;

use megagrid_geeps::apps::{Application, Measured, Place};
use megagrid_geeps::device::Command;
use megagrid_geeps::run::Run;
use megagrid_geeps::{Consistency, Error, RowsId, Session, TableId, Tables, VirtualIteration};
use megagrid_partition::SplitMix;
use proptest::prelude::*;

use crate::together::{first, together};

const EPOCHS: u64 = 2;

/// Every worker adds 1 to its own value and reads all, with delays; it checks what it reads.
struct Count {
    workers: usize,
    consistency: Consistency,
    iterations: u64,
    seed: u64,
}

struct Worker {
    number: usize,
    rows: RowsId,
    clock: u64,
    in_virtual_iteration: bool,
}

impl Count {
    fn table(&self) -> TableId {
        self.tables().iter().map(|(id, _)| id).next().expect("there is one")
    }

    fn delay(&self, worker: usize, clock: u64, part: u64) {
        let mut random = SplitMix::new(self.seed, clock * 64 + worker as u64 * 2 + part);
        if random.below(3) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(400)));
        }
    }
}

impl Application for Count {
    type Worker = Worker;

    fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        tables.add("counts", self.workers, 1);
        tables
    }

    fn first_values(&self) -> Result<Vec<Vec<f32>>, Error> {
        Ok(vec![vec![0.0; self.workers]])
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn declare(&self, worker: usize, session: &mut VirtualIteration) -> Result<Worker, Error> {
        let rows = session.all_rows(self.table());
        Ok(Worker { number: worker, rows, clock: 0, in_virtual_iteration: true })
    }

    fn iterate(&self, worker: &mut Worker, _: Place, session: &mut impl Session) -> Result<f64, Error> {
        let Worker { number, clock, .. } = *worker;
        self.delay(number, clock, 0);
        let read = session.read(worker.rows)?;
        let counts = session.download(read.range())?;
        session.post_read(read)?;
        let update = session.pre_update(worker.rows)?;
        session.submit(&[Command::Fill { to: update.range().part(number, 1), value: 1.0 }])?;
        session.update(update)?;
        self.delay(number, clock, 1);
        // Its own update of this clock, and no other that was not promised.
        let again = session.read(worker.rows)?;
        let later = session.download(again.range())?;
        session.post_read(again)?;
        session.table_clock(self.table())?;
        if std::mem::take(&mut worker.in_virtual_iteration) {
            return Ok(0.0);
        }
        worker.clock += 1;
        let clocks = clock as f32;
        for (other, &count) in counts.iter().enumerate() {
            let (least, most) = match self.consistency {
                _ if other == number => (clocks, clocks),
                Consistency::Bsp => (clocks, clocks),
                Consistency::Ssp { slack } => (clock.saturating_sub(slack) as f32, (clock + slack + 1) as f32),
                Consistency::Async => (0.0, EPOCHS as f32 * self.iterations as f32),
            };
            assert!((least..=most).contains(&count), "worker {number} in clock {clock} read {count} of {other}");
        }
        assert_eq!(later[number], clocks + 1.0, "worker {number} in clock {clock} reads its own update");
        Ok(0.0)
    }

    fn samples(&self, _: usize) -> u64 {
        1
    }

    fn measure(&self, values: &[Vec<f32>]) -> Measured {
        Measured { objective: values[0].iter().map(|&value| f64::from(value)).sum(), ..Measured::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn reads_see_what_was_promised(
        seed in any::<u64>(),
        workers in 2_usize..5,
        kind in 0_u64..5,
        prefetch in any::<bool>(),
        has_processes in any::<bool>(),
        // The least, where nothing is pinned, and more.
        budget in prop_oneof![Just(512_u64), Just(1 << 20)],
    ) {
        let consistency = match kind {
            0 => Consistency::Bsp,
            4 => Consistency::Async,
            slack => Consistency::Ssp { slack: slack - 1 },
        };
        let count = Count { workers, consistency, iterations: 12, seed };
        let run = Run { workers, epochs: EPOCHS, consistency, budget, prefetch };
        // A process for each worker, whose rows are in all of them.
        let (finish, epochs) = first(together(if has_processes { workers } else { 1 }, &count, run, None));
        prop_assert_eq!(epochs[1].0.measured.objective, (24 * workers) as f64);
        let (oldest, freshest) = match consistency {
            Consistency::Bsp => (-1, -1),
            Consistency::Ssp { slack } => (-1 - slack as i64, -1),
            Consistency::Async => (-25, -1),
        };
        prop_assert!(finish.staleness.keys().all(|age| (oldest..=freshest).contains(age)), "{:?}", finish.staleness);
    }
}
