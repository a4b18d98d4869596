//! Vector levels: one binary whose hot loops are compiled for several instruction sets and dispatched at run time.
//!
//! A loop is compiled for each level ([`Level::run`]). The row kernels inside it are compiled for each level too
//! ([`row_kernel`]), and follow the level of the loop that runs on their thread: a byte and a branch that is always
//! predicted. Where loop and kernel have the same level the kernel is inlined.
#![allow(unsafe_code, reason = "calling a function compiled for a detected instruction set, and prefetching, need it")]

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

pub use vectors::Vector;

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
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "one level"))]
        let mut levels = vec![Self::PLAIN];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi2") {
                levels.push(Self(Set::Avx2));
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    levels.push(Self(Set::Avx512));
                }
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

    /// Runs a loop compiled for this level; row kernels inside it are of this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        let outer = CURRENT.replace(Some(self));
        let output = match self.0 {
            Set::Plain => kernel.run(),
            // SAFETY: a `Level` of this set is made by `available` alone, after it detected these features.
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
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
        Set::Plain => kernel.run::<vectors::Plain>(),
        // SAFETY: a `Level` of this set is made by `Level::available` alone, after it detected these features.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { row_avx2(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => unsafe { row_avx512(kernel) },
    }
}

#[cold]
fn first_use() -> Level {
    let level = Level::detect();
    CURRENT.set(Some(level));
    level
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn row_avx2<K: RowKernel>(kernel: K) -> K::Output {
    kernel.run::<vectors::Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn row_avx512<K: RowKernel>(kernel: K) -> K::Output {
    kernel.run::<vectors::Avx512>()
}

mod vectors {
    //! Sixteen numbers at a time, for each level.

    use crate::store::ROW_ALIGN;

    type Lanes = [f32; ROW_ALIGN];

    mod sealed {
        pub trait Sealed {}
    }

    /// Sixteen numbers. The types that implement it are private to this module, and are used where their instruction set was
    /// detected alone. Operations may round once instead of twice where the level can; results differ between levels,
    /// never between runs on one level.
    pub trait Vector: sealed::Sealed + Copy {
        /// Loads sixteen numbers.
        fn load(from: &Lanes) -> Self;
        /// Stores sixteen numbers.
        fn store(self, to: &mut Lanes);
        /// Sixteen times one number.
        fn splat(value: f32) -> Self;
        /// Returns `self + b`.
        fn plus(self, b: Self) -> Self;
        /// Returns `self * b`.
        fn times(self, b: Self) -> Self;
        /// Returns `self * b + c`.
        fn times_plus(self, b: Self, c: Self) -> Self;
        /// Returns `c - self * b`.
        fn subtract_from(self, b: Self, c: Self) -> Self;
        /// Returns the sum of the sixteen.
        fn sum(self) -> f32;
        /// Returns the sums of two vectors, together, which is cheaper than one after the other.
        #[inline(always)]
        fn sums(self, b: Self) -> (f32, f32) {
            (self.sum(), b.sum())
        }
    }

    /// Any processor of the target.
    #[derive(Clone, Copy)]
    pub struct Plain(Lanes);

    impl sealed::Sealed for Plain {}

    impl Plain {
        #[inline(always)]
        fn each(f: impl FnMut(usize) -> f32) -> Self {
            Self(std::array::from_fn(f))
        }
    }

    impl Vector for Plain {
        #[inline(always)]
        fn load(from: &Lanes) -> Self {
            Self(*from)
        }
        #[inline(always)]
        fn store(self, to: &mut Lanes) {
            *to = self.0;
        }
        #[inline(always)]
        fn splat(value: f32) -> Self {
            Self([value; ROW_ALIGN])
        }
        #[inline(always)]
        fn plus(self, b: Self) -> Self {
            Self::each(|i| self.0[i] + b.0[i])
        }
        #[inline(always)]
        fn times(self, b: Self) -> Self {
            Self::each(|i| self.0[i] * b.0[i])
        }
        // No `mul_add` on the plain path: where the processor has none it is a library call.
        #[inline(always)]
        fn times_plus(self, b: Self, c: Self) -> Self {
            Self::each(|i| self.0[i] * b.0[i] + c.0[i])
        }
        #[inline(always)]
        fn subtract_from(self, b: Self, c: Self) -> Self {
            Self::each(|i| c.0[i] - self.0[i] * b.0[i])
        }
        #[inline(always)]
        fn sum(self) -> f32 {
            let eight: [f32; 8] = std::array::from_fn(|i| self.0[i] + self.0[i + 8]);
            let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
            (four[0] + four[2]) + (four[1] + four[3])
        }
    }

    #[cfg(target_arch = "x86_64")]
    pub use x86::{Avx2, Avx512};

    #[cfg(target_arch = "x86_64")]
    mod x86 {
        //! Vectors of AVX2 and AVX-512.
        //!
        //! SAFETY of every block below: these types are reached through `row_avx2` and `row_avx512` alone, which run where
        //! their features were detected; loads and stores are unaligned and of sixteen numbers, as the array types say.

        use std::arch::x86_64::*;

        use super::{Lanes, Vector, sealed};

        /// One 512-bit register.
        #[derive(Clone, Copy)]
        pub struct Avx512(__m512);

        impl sealed::Sealed for Avx512 {}

        impl Vector for Avx512 {
            #[inline(always)]
            fn load(from: &Lanes) -> Self {
                // SAFETY: see above.
                Self(unsafe { _mm512_loadu_ps(from.as_ptr()) })
            }
            #[inline(always)]
            fn store(self, to: &mut Lanes) {
                // SAFETY: see above.
                unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn splat(value: f32) -> Self {
                // SAFETY: see above.
                Self(unsafe { _mm512_set1_ps(value) })
            }
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { _mm512_add_ps(self.0, b.0) })
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { _mm512_mul_ps(self.0, b.0) })
            }
            #[inline(always)]
            fn times_plus(self, b: Self, c: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn subtract_from(self, b: Self, c: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { _mm512_fnmadd_ps(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn sum(self) -> f32 {
                // SAFETY: see above.
                unsafe { _mm512_reduce_add_ps(self.0) }
            }
            #[inline(always)]
            fn sums(self, b: Self) -> (f32, f32) {
                // SAFETY: see above.
                unsafe {
                    // Numbers of both vectors side by side, folded to half the length three times.
                    let sixteen = _mm512_add_ps(_mm512_unpacklo_ps(self.0, b.0), _mm512_unpackhi_ps(self.0, b.0));
                    let eight = _mm256_add_ps(_mm512_castps512_ps256(sixteen), _mm512_extractf32x8_ps::<1>(sixteen));
                    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
                    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                    (_mm_cvtss_f32(two), _mm_cvtss_f32(_mm_movehdup_ps(two)))
                }
            }
        }

        /// Two 256-bit registers.
        #[derive(Clone, Copy)]
        pub struct Avx2(__m256, __m256);

        impl sealed::Sealed for Avx2 {}

        impl Vector for Avx2 {
            #[inline(always)]
            fn load(from: &Lanes) -> Self {
                // SAFETY: see above.
                unsafe { Self(_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from[8..].as_ptr())) }
            }
            #[inline(always)]
            fn store(self, to: &mut Lanes) {
                // SAFETY: see above.
                unsafe {
                    _mm256_storeu_ps(to.as_mut_ptr(), self.0);
                    _mm256_storeu_ps(to[8..].as_mut_ptr(), self.1);
                }
            }
            #[inline(always)]
            fn splat(value: f32) -> Self {
                // SAFETY: see above.
                unsafe { Self(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
            }
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                // SAFETY: see above.
                unsafe { Self(_mm256_add_ps(self.0, b.0), _mm256_add_ps(self.1, b.1)) }
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                // SAFETY: see above.
                unsafe { Self(_mm256_mul_ps(self.0, b.0), _mm256_mul_ps(self.1, b.1)) }
            }
            #[inline(always)]
            fn times_plus(self, b: Self, c: Self) -> Self {
                // SAFETY: see above.
                unsafe { Self(_mm256_fmadd_ps(self.0, b.0, c.0), _mm256_fmadd_ps(self.1, b.1, c.1)) }
            }
            #[inline(always)]
            fn subtract_from(self, b: Self, c: Self) -> Self {
                // SAFETY: see above.
                unsafe { Self(_mm256_fnmadd_ps(self.0, b.0, c.0), _mm256_fnmadd_ps(self.1, b.1, c.1)) }
            }
            #[inline(always)]
            fn sum(self) -> f32 {
                // SAFETY: see above.
                unsafe {
                    let eight = _mm256_add_ps(self.0, self.1);
                    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
                    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
                }
            }
        }
    }
}

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
