//! What is compared.

use megagrid_baselines::server::{CONTENTION_BOUND, Gather, Prefetch, Specializations, ThreadCache};

use crate::pattern::{Pattern, accesses};

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
                let other = accesses(pattern, seed + 1000);
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

/// One on.
pub fn switches_on() -> Vec<Setting> {
    let all = Specializations::all(usize::MAX);
    vec![
        none("none", |_| {}),
        none("prefetch alone", |s| s.prefetch = Prefetch::Conservative),
        none("static structures alone", |s| s.specializations.static_structures = true),
        none("prefetch and static structures", |s| {
            (s.prefetch, s.specializations.static_structures) = (Prefetch::Conservative, true);
        }),
        none("thread cache alone", |s| s.specializations.thread_cache = all.thread_cache),
        none("placement alone", |s| s.specializations.placement = true),
    ]
}

/// One off.
pub fn switches_off() -> Vec<Setting> {
    vec![
        setting("all but prefetch", |s| s.prefetch = Prefetch::Off),
        setting("all but static structures", |s| s.specializations.static_structures = false),
        setting("all but thread cache", |s| s.specializations.thread_cache = ThreadCache::Off),
        setting("all but placement", |s| s.specializations.placement = false),
        setting("all, gathered in a real iteration", |s| s.gather = Some(Gather::Real)),
        setting("all", |_| {}),
    ]
}

/// Policies by capacity.
pub fn caches(pattern: Pattern) -> Vec<Setting> {
    let rows = pattern.sizes().0 as usize + 1;
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

/// Accesses left out of what is gathered, and put in.
pub fn missing() -> Vec<Setting> {
    let with = |name: String, reported: Reported| setting(&name, |s| s.reported = reported);
    let mut settings = vec![setting("all reported", |_| {})];
    for percent in [5, 20, 50] {
        let share = f64::from(percent) / 100.0;
        settings.push(with(format!("last {percent} % missing"), Reported::WithoutLast(share)));
        settings.push(with(format!("{percent} % missing at random"), Reported::WithoutRandom(share)));
    }
    settings.push(with("50 % false".to_owned(), Reported::WithFalse(0.5)));
    settings
}
