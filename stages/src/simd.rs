//! Vector levels: one binary whose hot loops are compiled for several instruction sets and dispatched at run time.
//!
//! A loop is compiled for each level ([`Level::run`]). The row kernels inside it are compiled for each level too
//! ([`row_kernel`]), and follow the level of the loop that runs on their thread: a byte and a branch that is always
//! predicted. Where loop and kernel have the same level the kernel is inlined.
#![allow(unsafe_code, reason = "calling a function compiled for a detected instruction set, and prefetching, need it")]

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

pub use integers::{Bytes, Integers, Numbers, six_bits};
pub use vectors::{Half, Vector};

/// An instruction set that this processor has: a value exists only where it was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Set {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

thread_local! {
    /// The level of the loop that runs on this thread.
    static CURRENT: Cell<Option<Level>> = const { Cell::new(None) };
}

impl Level {
    /// What the compiler assumes of every processor of the target: SSE2 on x86-64, NEON on 64-bit Arm.
    pub const PLAIN: Self = Self(Set::Plain);

    /// Returns the widest level of this processor.
    #[must_use]
    pub fn detect() -> Self {
        Self::available().last().copied().unwrap_or(Self::PLAIN)
    }

    /// Returns the levels of this processor, narrowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        return Self::of(has);
        #[cfg(not(target_arch = "x86_64"))]
        vec![Self::PLAIN]
    }

    /// Returns the levels of a processor that has these features: of each level, all that its loops are compiled with.
    #[cfg(target_arch = "x86_64")]
    fn of(has: impl Fn(&str) -> bool) -> Vec<Self> {
        let mut levels = vec![Self::PLAIN];
        if AVX2.iter().all(|feature| has(feature)) {
            levels.push(Self(Set::Avx2));
            if AVX512.iter().all(|feature| has(feature)) {
                levels.push(Self(Set::Avx512));
            }
        }
        levels
    }

    /// Returns the level's name: `plain`, `avx2`, `avx512`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
        }
    }

    /// Returns the widest level, up to this one, for loops over scattered values. With AVX-512 compilers gather these; where that is
    /// slow (Intel from Skylake to Rocket Lake) it is AVX2, for which they load them one by one.
    #[must_use]
    pub fn of_scattered(self) -> Self {
        match self.0 {
            // What has AVX-512 has AVX2: see `available`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 if gathers_are_slow() => Self(Set::Avx2),
            set => Self(set),
        }
    }

    /// Runs a loop compiled for this level; row kernels inside it are of this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        let outer = CURRENT.replace(Some(self));
        let output = match self.0 {
            Set::Plain => kernel.run(),
            // SAFETY: a `Level` of this set is made only by `available`, after it detected these features.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { run_avx512(kernel) },
        };
        CURRENT.set(outer);
        output
    }
}

/// Tells whether this is a processor with AVX-512 that gathers by microcode, slower than it loads: AMD's, and Intel's from Skylake
/// to Rocket Lake, whose gathers were mended (Intel, Gather Data Sampling, INTEL-SA-00828).
#[cfg(target_arch = "x86_64")]
fn gathers_are_slow() -> bool {
    use std::arch::x86_64::__cpuid;
    use std::sync::LazyLock;

    /// Models of family 6: Skylake to Cooper Lake, Cannon Lake, Ice Lake, Tiger Lake, Rocket Lake.
    const MENDED: [u32; 9] = [0x55, 0x66, 0x6a, 0x6c, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7];
    static SLOW: LazyLock<bool> = LazyLock::new(|| {
        // SAFETY: every x86-64 processor has the instruction and these two leaves.
        #[allow(unused_unsafe, reason = "newer compilers call it safe")]
        let (vendor, version) = unsafe { (__cpuid(0), __cpuid(1).eax) };
        let vendor = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
        let (family, model) = (version >> 8 & 0xf, version >> 4 & 0xf | version >> 12 & 0xf0);
        vendor == *b"AuthenticAMD" || vendor == *b"GenuineIntel" && family == 6 && MENDED.contains(&model)
    });
    *SLOW
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let levels = Self::available();
        levels.iter().find(|level| level.name() == name).copied().ok_or_else(|| {
            let names: Vec<_> = levels.iter().map(|level| level.name()).collect();
            format!("vector level \"{name}\" is not one of this processor's: {}", names.join(", "))
        })
    }
}

/// A hot loop to be compiled once for each vector level. `run`, and what it calls, must be `#[inline(always)]`.
pub trait Kernel {
    /// What the loop returns.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// A closure: the row kernels that it calls are of the level.
impl<T, F: FnOnce() -> T> Kernel for F {
    type Output = T;

    #[inline(always)]
    fn run(self) -> T {
        self()
    }
}

/// Compiles loops and row kernels for the levels of x86-64. A hypervisor may mask any feature, so what is enabled and what
/// is detected are one list; that of AVX-512 is what it needs beyond AVX2.
macro_rules! x86_levels {
    (avx2: $($avx2:tt),+; avx512: $($avx512:tt),+;) => {
        #[cfg(target_arch = "x86_64")]
        const AVX2: &[&str] = &[$($avx2),+];
        #[cfg(target_arch = "x86_64")]
        const AVX512: &[&str] = &[$($avx512),+];

        /// Tells whether this processor has a feature of the lists.
        #[cfg(target_arch = "x86_64")]
        fn has(feature: &str) -> bool {
            match feature {
                $($avx2 => is_x86_feature_detected!($avx2),)+
                $($avx512 => is_x86_feature_detected!($avx512),)+
                _ => false,
            }
        }

        #[cfg(target_arch = "x86_64")]
        $(#[target_feature(enable = $avx2)])+
        fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }

        #[cfg(target_arch = "x86_64")]
        $(#[target_feature(enable = $avx2)])+
        $(#[target_feature(enable = $avx512)])+
        fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }

        #[cfg(target_arch = "x86_64")]
        #[inline]
        $(#[target_feature(enable = $avx2)])+
        fn row_avx2<K: RowKernel>(kernel: K) -> K::Output {
            kernel.run::<vectors::Avx2>()
        }

        #[cfg(target_arch = "x86_64")]
        #[inline]
        $(#[target_feature(enable = $avx2)])+
        $(#[target_feature(enable = $avx512)])+
        fn row_avx512<K: RowKernel>(kernel: K) -> K::Output {
            kernel.run::<vectors::Avx512>()
        }
    };
}

// The compiler takes F16C for granted where there is AVX-512F.
x86_levels! {
    avx2: "avx2", "fma", "bmi1", "bmi2", "lzcnt", "popcnt";
    avx512: "avx512f", "avx512bw", "avx512dq", "avx512vl", "f16c";
}

/// A kernel on rows, written once over vectors of 16 numbers. `run` must be `#[inline(always)]`.
pub trait RowKernel {
    /// What the kernel returns.
    type Output;
    /// Runs the kernel.
    fn run<V: Vector>(self) -> Self::Output;
}

/// Runs a row kernel at the level of the enclosing [`Level::run`], or at the widest outside of any.
#[inline(always)]
pub fn row_kernel<K: RowKernel>(kernel: K) -> K::Output {
    let level = CURRENT.get().unwrap_or_else(first_use);
    match level.0 {
        Set::Plain => row_plain(kernel),
        // SAFETY: a `Level` of this set is made only by `Level::available`, after it detected these features.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { row_avx2(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => unsafe { row_avx512(kernel) },
    }
}

/// On x86-64 hardly any processor is at this level: loops have a call of it, and are shorter and faster at the others.
#[cfg_attr(target_arch = "x86_64", cold, inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
fn row_plain<K: RowKernel>(kernel: K) -> K::Output {
    kernel.run::<vectors::Plain>()
}

#[cold]
fn first_use() -> Level {
    let level = Level::detect();
    CURRENT.set(Some(level));
    level
}

mod integers;
mod vectors;

/// Asks the processor to bring memory into its nearest cache; it never faults and changes no result.
#[inline(always)]
pub fn prefetch<T>(items: *const T, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let mut at = 0;
        while at < bytes {
            // SAFETY: a prefetch of any address is allowed; the address is computed without dereferencing it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(items.cast::<i8>().wrapping_add(at)) };
            at += 64;
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (items, bytes);
}

/// As [`prefetch`], for the first line of an item that is written next: another processor's copy is given up at once.
#[inline(always)]
pub fn prefetch_to_write<T>(item: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address is allowed, changes no memory, and does nothing on processors without it.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) item, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    prefetch(item, 1);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_level_needs_each_feature_that_its_loops_are_compiled_with() {
        let names = |has: &dyn Fn(&str) -> bool| Level::of(has).iter().map(|level| level.name()).collect::<Vec<_>>();
        assert_eq!(names(&|_| true), ["plain", "avx2", "avx512"]);
        assert_eq!(names(&|_| false), ["plain"]);
        for masked in AVX2 {
            assert_eq!(names(&|feature| feature != *masked), ["plain"], "without {masked}");
        }
        for masked in AVX512 {
            assert_eq!(names(&|feature| feature != *masked), ["plain", "avx2"], "without {masked}");
        }
        for feature in ["bmi1", "bmi2", "lzcnt", "popcnt", "fma", "avx2"] {
            assert!(AVX2.contains(&feature), "{feature} is enabled");
        }
    }
}
