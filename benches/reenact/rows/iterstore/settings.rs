//! What is compared.

use megagrid_baselines::server::{CONTENTION_BOUND, Gather, Prefetch, Specializations, ThreadCache};

use super::pattern::Pattern;

/// One way to run a pattern.
#[derive(Clone)]
pub struct Setting {
    pub name: String,
    pub prefetch: Prefetch,
    pub specializations: Specializations,
    pub gather: Option<Gather>,
    pub reported: Reported,
}

/// Which accesses of a thread are gathered.
#[derive(Clone, Copy, PartialEq)]
pub enum Reported {
    /// All that it will do.
    All,
    /// All but the last part, as where it gets work of others afterwards.
    WithoutLast(f64),
    /// All but a part drawn at random.
    WithoutRandom(f64),
    /// All, and as a part of what is reported those of another thread, which it never does.
    WithFalse(f64),
}

impl Reported {
    /// Returns what is reported of a thread's accesses, pairs of rows.
    pub fn of(self, pattern: Pattern, own: &[u32], seed: u64) -> Vec<u32> {
        let pairs = |share: f64| 2 * (share * (own.len() / 2) as f64) as usize;
        match self {
            Self::All => own.to_vec(),
            Self::WithoutLast(share) => own[..own.len() - pairs(share)].to_vec(),
            Self::WithoutRandom(share) => {
                let mut state = seed;
                let mut kept = |_: &&[u32]| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    (state >> 11) as f64 / (1u64 << 53) as f64 >= share
                };
                own.chunks_exact(2).filter(|pair| kept(pair)).flatten().copied().collect()
            }
            Self::WithFalse(share) => {
                let other = pattern.accesses(seed + 1000);
                let false_pairs = pairs(share / (1.0 - share)).min(other.len());
                [own, &other[..false_pairs]].concat()
            }
        }
    }
}

fn setting(name: &str, change: impl FnOnce(&mut Setting)) -> Setting {
    let mut setting = Setting {
        name: name.to_owned(),
        prefetch: Prefetch::Conservative,
        specializations: Specializations::all(usize::MAX),
        gather: Some(Gather::Virtual),
        reported: Reported::All,
    };
    change(&mut setting);
    setting
}

fn none(name: &str, change: impl FnOnce(&mut Setting)) -> Setting {
    setting(name, |setting| {
        (setting.prefetch, setting.specializations) = (Prefetch::Off, Specializations::none());
        change(setting);
    })
}

/// Nothing, and one on.
pub fn alone() -> Vec<Setting> {
    let all = Specializations::all(usize::MAX);
    vec![
        none("nothing", |_| {}),
        none("prefetch alone", |s| s.prefetch = Prefetch::Conservative),
        none("static structures alone", |s| s.specializations.static_structures = true),
        none("prefetch and static structures", |s| {
            (s.prefetch, s.specializations.static_structures) = (Prefetch::Conservative, true);
        }),
        none("thread caches alone", |s| s.specializations.thread_cache = all.thread_cache),
        none("placement alone", |s| s.specializations.placement = true),
    ]
}

/// All, and one off.
pub fn without() -> Vec<Setting> {
    vec![
        setting("all", |_| {}),
        setting("all but static structures", |s| s.specializations.static_structures = false),
        setting("all but thread caches", |s| s.specializations.thread_cache = ThreadCache::Off),
        setting("all but placement", |s| s.specializations.placement = false),
    ]
}

/// All, the same gathered in the other way, and without what takes longest to do without.
pub fn first_and_later() -> Vec<Setting> {
    vec![
        setting("all", |_| {}),
        setting("all, gathered in a real iteration", |s| s.gather = Some(Gather::Real)),
        setting("all but prefetch", |s| s.prefetch = Prefetch::Off),
    ]
}

/// Nothing, all, and all gathered in a real iteration.
pub fn hundred() -> Vec<Setting> {
    vec![
        none("nothing", |_| {}),
        setting("all", |_| {}),
        setting("all, gathered in a real iteration", |s| s.gather = Some(Gather::Real)),
    ]
}

/// Policies by capacity.
pub fn caches(pattern: Pattern) -> Vec<Setting> {
    let rows = pattern.rows as usize + 1;
    let mut settings = vec![setting("no thread cache", |s| s.specializations.thread_cache = ThreadCache::Off)];
    for capacity in [1, rows / 1000, rows / 100, rows / 10, rows / 3, rows] {
        let capacity = capacity.max(1);
        settings.push(setting(&format!("LRU of {capacity}"), |s| {
            s.specializations.thread_cache = ThreadCache::Lru { capacity };
        }));
        settings.push(setting(&format!("static of {capacity}"), |s| {
            s.specializations.thread_cache = ThreadCache::Static { capacity, contention_bound: CONTENTION_BOUND };
        }));
    }
    settings
}

/// All accesses reported, and each of `percents` of them left out in either way.
pub fn missing(percents: &[u32]) -> Vec<Setting> {
    let mut settings = vec![setting("all reported", |_| {})];
    for percent in percents {
        let share = f64::from(*percent) / 100.0;
        settings.push(setting(&format!("the last {percent} % missing"), |s| s.reported = Reported::WithoutLast(share)));
        settings.push(setting(&format!("random {percent} % missing"), |s| s.reported = Reported::WithoutRandom(share)));
    }
    settings
}

/// Accesses reported that are not done.
pub fn false_half() -> Setting {
    setting("half of it false", |s| s.reported = Reported::WithFalse(0.5))
}
