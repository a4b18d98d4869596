//! A worker as a state machine, without threads or sockets: whoever drives it calls [`Worker::step`] again and again.
//!
//! Timely drives it in earnest, loom in tests, a virtual cluster under modelled time. A worker walks the steps of an
//! iteration. It *enters* a step when the consistency model allows (see [`Board`]), then runs its tasks: with slack 0 in
//! the plan's order, rotating shards when their turn has come, so that a run is serializable and reproducible; with slack
//! in any order, taking another task where a hold is refused.

use std::collections::VecDeque;
use std::sync::Arc;

use super::board::Board;
use crate::plan::{After, Event, Plan, Task};

/// What a task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Ran,
    /// A hold was refused; nothing was changed.
    Refused,
}

/// Where a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The iteration, from 1.
    pub iteration: u64,
    /// The clock, from 1.
    pub clock: u64,
    /// The stage's index.
    pub stage: usize,
    /// Whether shards that travel to and fro are on their way back: tasks are run in reverse.
    pub back: bool,
}

/// What the state machine calls to get work done.
pub trait Tasks {
    /// A clock begins; every worker has ended clock `slowest`.
    fn begin_clock(&mut self, clock: u64, slowest: u64);

    /// Runs a task, or is refused a hold.
    fn run(&mut self, at: Position, task: &Task) -> Outcome;
}

/// What a call of [`Worker::step`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something was done; call again.
    Ran,
    /// Nothing can be done before another worker, or the driver, gets on.
    Waiting,
    /// The worker ended this iteration; call again.
    Ended(u64),
    /// The run is over for this worker.
    Stopped,
}

/// Clocks of changes that masters may not have yet, without a bound on staleness: what waits for a slow receiver is bounded.
const UNACKNOWLEDGED: u64 = 64;

/// One worker.
#[derive(Debug)]
pub struct Worker {
    id: usize,
    /// Its number among the workers of this process.
    thread: usize,
    plan: Arc<Plan>,
    board: Arc<Board>,
    seed: u64,
    iteration: u64,
    /// Whether an iteration is under way, what it consists of, and what comes next.
    active: bool,
    events: Vec<Event>,
    at: usize,
    /// The current clock, from 1, and whether it has begun.
    clock: u64,
    clock_begun: bool,
    /// Whether the iteration under way, or the last one, ends a clock.
    ends_clock: bool,
    /// Steps ended since the run began, and when the clocks had ended that the slack looks back to; without a bound, the last of which
    /// everything has come, and all after it.
    steps: u64,
    steps_at_clock: VecDeque<u64>,
    /// Tasks of the current step that are still to run, in reverse order; `None` before it is entered.
    todo: Option<Vec<usize>>,
    /// Visits of each right shard before the current step.
    visits: Vec<u64>,
    /// How often shards that travel to and fro have gone all their way.
    passes: u64,
}

impl Worker {
    /// Begins before iteration `done + 1`.
    #[must_use]
    pub fn new(id: usize, plan: Arc<Plan>, board: Arc<Board>, seed: u64, done: u64) -> Self {
        let (visits, passes) = (vec![0; plan.right.num_shards()], done * plan.passes());
        Self {
            id,
            thread: id % plan.threads(),
            plan,
            board,
            seed,
            iteration: done,
            active: false,
            events: Vec::new(),
            at: 0,
            clock: 1,
            clock_begun: false,
            ends_clock: true,
            steps: 0,
            steps_at_clock: VecDeque::from([0]),
            todo: None,
            visits,
            passes,
        }
    }

    /// Returns the number of steps that this worker has ended.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the current clock, or the next one if it has not begun.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Tells whether what comes next, a step or the end of an iteration, waits for all workers: they wait for this one too.
    #[must_use]
    pub fn is_at_barrier(&self) -> bool {
        match self.events.get(self.at) {
            Some(Event::Step { step, .. }) => {
                self.todo.is_none() && (!self.clock_begun || self.plan.steps[*step].after == After::All)
            }
            Some(Event::Clock) => false,
            None => true,
        }
    }

    /// Does one thing: a task, the end of a step or of an iteration.
    pub fn step(&mut self, tasks: &mut dyn Tasks) -> Progress {
        if self.board.stopped() {
            return Progress::Stopped;
        }
        match self.events.get(self.at).copied() {
            None if self.active => self.end_iteration(),
            None => self.begin_iteration(),
            Some(Event::Clock) => self.end_clock(),
            Some(Event::Step { step, lag }) => match self.todo.take() {
                None => self.enter(step, lag, tasks),
                Some(todo) => self.run(step, todo, tasks),
            },
        }
    }

    fn begin_iteration(&mut self) -> Progress {
        let approved = self.board.approved();
        if approved <= self.iteration {
            return Progress::Waiting;
        }
        self.iteration += 1;
        let passes = self.plan.passes_per_clock;
        let begins_clock = self.ends_clock;
        // At a look all changes are in.
        self.ends_clock = self.iteration.is_multiple_of(passes) || self.iteration == approved;
        if self.events.is_empty() || passes > 1 || !self.plan.fixed_order() {
            self.events = self.plan.pass(self.seed, self.iteration, (begins_clock, self.ends_clock));
        }
        self.at = 0;
        self.active = true;
        Progress::Ran
    }

    /// With slack 0, and before a look of several processes, an iteration that ended has ended on every worker.
    fn end_iteration(&mut self) -> Progress {
        let flows = self.plan.flows && self.board.approved() > self.iteration;
        let together = self.plan.slack == Some(0) || self.plan.is_distributed();
        if together && !flows && !self.all_ended(self.steps) {
            return Progress::Waiting;
        }
        self.active = false;
        Progress::Ended(self.iteration)
    }

    fn end_clock(&mut self) -> Progress {
        self.board.end_clock(self.thread, self.clock);
        self.steps_at_clock.push_back(self.steps);
        while self.leaves_a_clock_behind() {
            self.steps_at_clock.pop_front();
        }
        self.clock += 1;
        self.clock_begun = false;
        self.advance()
    }

    /// Tells whether the first clock whose end is known is of no interest any more.
    fn leaves_a_clock_behind(&self) -> bool {
        match self.plan.slack {
            Some(slack) => self.steps_at_clock.len() as u64 > slack.saturating_add(1),
            None => self.steps_at_clock.get(1).is_some_and(|&steps| self.has_come(steps)),
        }
    }

    fn advance(&mut self) -> Progress {
        self.at += 1;
        Progress::Ran
    }

    /// Tells whether the consistency model lets this worker begin the step (DESIGN: SSP's bound; slack 0 is BSP).
    fn may_enter(&self, step: usize, lag: u64) -> bool {
        self.is_in_bounds()
            && match self.plan.steps[step].after {
                After::Own => true,
                After::Process => self.board.all_ended_steps(self.steps),
                After::All => self.all_ended(self.steps - lag),
            }
    }

    /// Tells whether this worker sees all of clock t − 1 − s.
    fn is_in_bounds(&self) -> bool {
        let (plan, board) = (&self.plan, &self.board);
        let Some(slack) = plan.slack else {
            let is_allowed = self.clock_begun || board.allowed() >= self.clock;
            return is_allowed && (!plan.has_ages() || board.included().saturating_add(UNACKNOWLEDGED) >= self.clock);
        };
        let needed = self.clock.saturating_sub(slack.saturating_add(1));
        board.slowest_clock() >= needed
            && self.has_come(self.steps_at_clock[0])
            && (!plan.has_ages() || board.age() >= needed)
    }

    /// Returns up to which clock the data holds everything.
    fn age(&self) -> u64 {
        if self.plan.has_ages() {
            return self.board.age().min(self.clock - 1);
        }
        // Other processes are not on the board.
        let missing = self.steps_at_clock.iter().rev().take_while(|&&steps| !self.has_come(steps)).count() as u64;
        self.board.slowest_clock().min((self.clock - 1).saturating_sub(missing))
    }

    /// Tells whether all workers of all processes have ended `steps` steps, and what they sent in them was taken in.
    fn all_ended(&self, steps: u64) -> bool {
        self.board.all_ended_steps(steps) && self.has_come(steps)
    }

    /// Tells whether what other processes sent in their first `steps` steps is here, and no worker keeps rows of it back: one
    /// that is in a long task takes in only later what came to it before its time.
    fn has_come(&self, steps: u64) -> bool {
        !self.plan.is_distributed() || self.board.arrived() >= steps && self.board.took_in(steps)
    }

    fn enter(&mut self, step: usize, lag: u64, tasks: &mut dyn Tasks) -> Progress {
        if !self.may_enter(step, lag) {
            return Progress::Waiting;
        }
        if !self.clock_begun {
            self.clock_begun = true;
            tasks.begin_clock(self.clock, self.age());
        }
        let tasks = 0..self.plan.steps[step].tasks[self.id].len();
        self.todo = Some(if self.goes_back(step) { tasks.collect() } else { tasks.rev().collect() });
        Progress::Ran
    }

    fn run(&mut self, step: usize, mut todo: Vec<usize>, tasks: &mut dyn Tasks) -> Progress {
        let plan = Arc::clone(&self.plan);
        let stage = plan.steps[step].stage;
        let at = Position { iteration: self.iteration, clock: self.clock, stage, back: self.goes_back(step) };
        let mine = &plan.steps[step].tasks[self.id];
        if todo.is_empty() {
            return self.end_step(step);
        }
        let in_order = plan.slack == Some(0);
        let choices = if in_order { 1 } else { todo.len() };
        for n in 0..choices {
            let choice = todo.len() - 1 - n;
            let task = &mine[todo[choice]];
            // What a GlobalSync gathered is handed in last.
            let gathering = n > 0 && task.left.is_empty() && task.right.is_empty();
            if gathering || in_order && !self.due(at, task) {
                break;
            }
            if tasks.run(at, task) == Outcome::Ran {
                todo.remove(choice);
                if task.turn.is_some() {
                    self.end_visit(task);
                }
                self.todo = Some(todo);
                return Progress::Ran;
            }
        }
        self.todo = Some(todo);
        Progress::Waiting
    }

    /// Tells whether a step rotates shards that are on their way back.
    fn goes_back(&self, step: usize) -> bool {
        self.plan.alternates && self.passes % 2 == 1 && self.plan.rotates_update(self.plan.steps[step].stage)
    }

    fn due(&self, at: Position, task: &Task) -> bool {
        let shard = task.right.start;
        let visits_before = |turn| if at.back { self.plan.visitors(at.stage) - 1 - turn } else { turn };
        task.turn.is_none_or(|turn| self.board.visits(shard) == self.visits[shard] + visits_before(turn) as u64)
    }

    fn end_visit(&self, task: &Task) {
        if self.plan.slack == Some(0) {
            self.board.end_visit(task.right.start);
        }
    }

    fn end_step(&mut self, step: usize) -> Progress {
        let stage = self.plan.steps[step].stage;
        let visitors = self.plan.visitors(stage);
        self.passes += u64::from(self.plan.rotates_update(stage));
        if self.plan.steps[step].tasks[self.id].iter().any(|task| task.turn.is_some()) {
            for shard in self.plan.steps[step].scope.right.clone() {
                self.visits[shard] += visitors as u64;
            }
        }
        self.steps += 1;
        self.board.end_step(self.thread, self.steps);
        self.todo = None;
        self.advance()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use megagrid_partition::Side;
    use megagrid_stages::BatchOrder;
    use megagrid_stages::mode::Mode;

    use super::*;
    use crate::machine::topology::Topology;
    use crate::plan::{Cut, Input, Outline, Processes, StageInfo, StageKind, Strategy};

    /// Tasks that take no time; of each clock what its data holds.
    struct Clocks(Vec<u64>, Vec<u64>);

    impl Tasks for Clocks {
        fn begin_clock(&mut self, clock: u64, slowest: u64) {
            self.0.push(clock);
            self.1.push(slowest);
        }

        fn run(&mut self, _: Position, _: &Task) -> Outcome {
            Outcome::Ran
        }
    }

    /// Two workers of the first of two processes, with a slack of one clock: batches of left vertices read right rows that an
    /// Apply changes, and other processes send.
    fn plan() -> Plan {
        let info = |kind| StageInfo { grouped: true, ..StageInfo::new("", kind) };
        let stages = vec![info(StageKind::Exchange(Mode::Read, Mode::Add)), info(StageKind::Apply(Side::Right))];
        let batch = vec![Outline::Stage(0), Outline::Stage(1)];
        let body = [Outline::Vertices(Side::Left, Cut::Vertices(8), BatchOrder::Fixed, batch)];
        let input = Input {
            degrees: [Box::new(|_| 4), Box::new(|_| 8)],
            rows: [32, 16],
            edges: 128,
            row_bytes: [8, 8],
            edge_bytes: 0,
            square: false,
            workers: 4,
            processes: Processes { this: 0, count: 2 },
            strategy: Strategy::BiCut,
            crossing_bytes: [[4, 4]; 2],
            slack: Some(1),
            look_every: None,
            passes_per_clock: 1,
            topology: &Topology::synthetic(1, 2),
            grid: true,
            early: true,
        };
        Plan::make(stages, &body, &input).unwrap()
    }

    /// The other worker of a process took rows off the network before its process had ended what reads the old ones, and is in
    /// a long task since: they are neither under way nor in their place.
    #[test]
    fn a_clock_waits_for_rows_that_another_worker_of_the_process_keeps() {
        let plan = Arc::new(plan());
        let board = Arc::new(Board::new(2, plan.right.num_shards()));
        let worker = |id| Worker::new(id, Arc::clone(&plan), Arc::clone(&board), 1, 0);
        let (mut workers, mut clocks) = ([worker(0), worker(1)], [(); 2].map(|()| Clocks(Vec::new(), Vec::new())));
        let mut go_on = |id: usize, clocks: &mut [Clocks; 2]| {
            while workers[id].step(&mut clocks[id]) == Progress::Ran {}
            (workers[id].steps(), clocks[id].0.last().copied())
        };
        // The other process has ended everything, and its rows of the first step came to worker 1, which keeps them.
        board.approve(1);
        board.arrive(u64::MAX);
        board.keep_early(1, 0);
        // Neither begins clock 3, which has to see all of clock 1, though both have ended that.
        let ended = [0, 1, 0, 1].map(|id| go_on(id, &mut clocks));
        assert!(board.slowest_clock() >= 1, "{ended:?}");
        assert_eq!(clocks.each_ref().map(|clocks| clocks.0.clone()), [vec![1, 2], vec![1, 2]]);
        // With these rows in their place it goes on to clock 4, which has to see all of clock 2.
        board.keep_early(1, u64::MAX);
        assert_eq!(go_on(0, &mut clocks).1, Some(4));
    }

    #[test]
    fn data_is_as_old_as_what_other_processes_sent() {
        for (slack, arrived, expected) in
            [(Some(1), 0, vec![0, 0]), (Some(1), u64::MAX, vec![0, 1, 2]), (None, 0, vec![0, 0, 0])]
        {
            let plan = Arc::new(Plan { slack, ..plan() });
            let board = Arc::new(Board::new(1, plan.right.num_shards()));
            let mut worker = Worker::new(0, Arc::clone(&plan), Arc::clone(&board), 1, 0);
            board.approve(1);
            board.arrive(arrived);
            let mut clocks = Clocks(Vec::new(), Vec::new());
            while clocks.0.len() < 3 && worker.step(&mut clocks) == Progress::Ran {}
            assert_eq!(clocks.1, expected, "slack {slack:?}");
        }
    }
}
