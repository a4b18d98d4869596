//! Threads by their numbers in the system, and the processors that they are kept on.
#![forbid(unsafe_code)]

/// Returns how often the system has taken the processor from the current thread; 0 where it does not say.
pub fn times_put_aside() -> i64 {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use nix::sys::resource::{UsageWho, getrusage};
        getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    0
}

/// A thread's number in the system; 0 where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(i32);

/// Returns the number of the current thread.
pub fn current_thread() -> ThreadId {
    #[cfg(all(target_os = "linux", not(miri)))]
    return ThreadId(nix::unistd::gettid().as_raw());
    #[cfg(not(all(target_os = "linux", not(miri))))]
    return ThreadId(0);
}

/// Returns how long a thread of this process has been on a processor, up to now; `None` where the system does not say.
pub fn processor_time_of(thread: ThreadId) -> Option<std::time::Duration> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use nix::time::{ClockId, clock_gettime};
        // The clock of a thread by its number, as pthread_getcpuclockid makes it.
        let clock = ClockId::from_raw((!thread.0 << 3) | 6);
        clock_gettime(clock).ok().map(std::time::Duration::from)
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = thread;
        None
    }
}

/// Keeps the current thread on some logical processors, by their numbers in the system; returns whether it is kept there.
///
/// Without it the system may put two workers on one processor for milliseconds, while another stands idle.
pub fn keep_current_thread_on(processors: &[usize]) -> bool {
    keep_thread_on(current_thread(), processors)
}

/// Keeps a thread of this process on some logical processors.
pub fn keep_thread_on(thread: ThreadId, processors: &[usize]) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use nix::sched::{CpuSet, sched_setaffinity};
        let mut set = CpuSet::new();
        let added = processors.iter().try_for_each(|&processor| set.set(processor));
        added.and_then(|()| sched_setaffinity(nix::unistd::Pid::from_raw(thread.0), &set)).is_ok()
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = (thread, processors);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_thread_is_kept_on_processors_that_there_are() {
        let core = crate::Topology::detect().nodes[0].cores[0];
        let keep = move || (keep_current_thread_on(&[core]), keep_current_thread_on(&[1 << 40]));
        assert_eq!(std::thread::spawn(keep).join().unwrap(), (cfg!(target_os = "linux"), false));
    }
}
