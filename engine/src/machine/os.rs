//! What the engine asks of the operating system: zero pages and huge pages, threads kept on processors, memory left and used.
//!
//! The kernel places a page on the node of the thread that writes it first. An [`AlignedBuffer`] therefore comes as
//! untouched zero pages, and whoever owns a shard writes it first. Everything here is best effort but the allocation
//! itself: where a system cannot do a thing, the answer is `false` or `None` and the run goes on without it.
#![allow(unsafe_code, reason = "pages of chosen alignment and advice on them have no safe interface; proofs below")]

use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Zeroable;
use megagrid_stages::Item;

use crate::Error;

mod memory;
mod threads;

pub(crate) use memory::field;
pub use memory::{available_memory_bytes, peak_rss_bytes};
pub use threads::{
    ThreadId, current_thread, keep_current_thread_on, keep_thread_on, processor_time_of, times_put_aside,
};

/// Alignment of every buffer: a cache line, and a whole vector register of any level.
pub const ALIGNMENT: usize = 64;
/// Size of a huge page on x86-64, and on Arm with pages of 4 KiB.
pub const HUGE_PAGE: usize = 2 << 20;
/// Buffers of more bytes than this begin on a huge page and ask for huge pages.
pub const HUGE_FROM: usize = 4 << 20;
/// Buffers of at least this many bytes are mapped; smaller ones would waste the rest of their last page.
#[cfg(any(all(unix, not(miri)), test))]
const MAP_FROM: usize = 128 << 10;

/// A fixed number of items in aligned memory that starts as zero bytes, or that of a boxed slice.
///
/// Zero bytes begin on a multiple of [`ALIGNMENT`], or of [`HUGE_PAGE`] when there are more than [`HUGE_FROM`]. From 128 KiB
/// their pages come untouched from the system, so that the first thread to write one decides on which node it lies.
pub struct AlignedBuffer<T> {
    items: NonNull<T>,
    len: usize,
    memory: Memory,
}

/// Where the memory of a buffer came from, and so how it goes back.
enum Memory {
    Nothing,
    Heap(Layout),
    #[cfg(all(unix, not(miri)))]
    Mapped(map::Pages),
}

// SAFETY: a buffer is the only owner of its items, as a `Vec` does, and the memory may be given back from any thread.
unsafe impl<T: Send> Send for AlignedBuffer<T> {}
// SAFETY: a shared buffer gives out `&[T]` and nothing else.
unsafe impl<T: Sync> Sync for AlignedBuffer<T> {}

impl<T: Zeroable> AlignedBuffer<T> {
    /// Makes `len` items of zero bytes.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when the system refuses, or when `len` items are more bytes than can be addressed.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        const { assert!(align_of::<T>() <= ALIGNMENT, "items need no more alignment than a buffer has") };
        const { assert!(!std::mem::needs_drop::<T>(), "items are plain data: a buffer does not drop them") };
        let bytes = len.saturating_mul(size_of::<T>());
        let (start, memory) = allocate(bytes).ok_or(Error::OutOfMemory(bytes))?;
        Ok(Self { items: start.cast(), len, memory })
    }
}

impl<T: Item> From<Box<[T]>> for AlignedBuffer<T> {
    /// Keeps items where they are.
    fn from(items: Box<[T]>) -> Self {
        let (len, layout) = (items.len(), Layout::for_value(&*items));
        let memory = if layout.size() == 0 { Memory::Nothing } else { Memory::Heap(layout) };
        Self { items: NonNull::from(Box::leak(items)).cast(), len, memory }
    }
}

impl<T> AlignedBuffer<T> {
    /// Returns the address of the first item, for reads and writes of all of them.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.items.as_ptr()
    }

    /// Lets the items before `item` and those from it on lie on different nodes of memory: a huge page that had some of both, or of
    /// memory beside the buffer, would be on the node of whoever writes it first. Ask before anything there is written.
    ///
    /// # Panics
    /// When there are fewer items.
    pub fn split_pages_at(&self, item: usize) {
        assert!(item <= self.len, "pages of {} items are split at item {item}", self.len);
        #[cfg(all(unix, not(miri)))]
        if let Memory::Mapped(pages) = &self.memory {
            pages.keep_small_around(item * size_of::<T>());
        }
    }
}

impl<T> Deref for AlignedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `zeroed` allocated `len` items (or none at all, where `items` dangles but is aligned) of zero bytes, which
        // are valid by `T: Zeroable`, or `from` has them of a box; what is written later is a `T`. `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for AlignedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other reference.
        unsafe { std::slice::from_raw_parts_mut(self.items.as_ptr(), self.len) }
    }
}

impl<T> Drop for AlignedBuffer<T> {
    fn drop(&mut self) {
        match self.memory {
            Memory::Nothing => {}
            // SAFETY: `allocate`, or the box, got `items` from the global allocator with this layout; this is the only release.
            Memory::Heap(layout) => unsafe { std::alloc::dealloc(self.items.as_ptr().cast(), layout) },
            #[cfg(all(unix, not(miri)))]
            // SAFETY: `allocate` made this mapping for this buffer, whose last use this is.
            Memory::Mapped(pages) => unsafe { pages.release() },
        }
    }
}

/// Returns zero bytes that begin where [`AlignedBuffer`] promises; `None` when they cannot be had.
fn allocate(bytes: usize) -> Option<(NonNull<u8>, Memory)> {
    let align = if bytes > HUGE_FROM { HUGE_PAGE } else { ALIGNMENT };
    // Refuses more than `isize::MAX` bytes, which no slice may have.
    let layout = Layout::from_size_align(bytes, align).ok()?;
    if bytes == 0 {
        return Some((
            NonNull::without_provenance(const { std::num::NonZero::new(ALIGNMENT).unwrap() }),
            Memory::Nothing,
        ));
    }
    #[cfg(all(unix, not(miri)))]
    if bytes >= MAP_FROM {
        let pages = map::Pages::zeroed(bytes, align)?;
        if bytes > HUGE_FROM {
            map::advise_huge_pages(pages.start().as_ptr(), bytes);
        }
        return Some((pages.start(), Memory::Mapped(pages)));
    }
    // SAFETY: the layout has a size other than zero.
    let start = unsafe { std::alloc::alloc_zeroed(layout) };
    Some((NonNull::new(start)?, Memory::Heap(layout)))
}

/// Has the allocator take large arrays, from 1 MiB, from the system and give them back, whatever came before; returns whether it agreed.
///
/// Left to itself, that of glibc takes what is up to 32 MiB from heaps of its threads once arrays of that size have come and gone, and the
/// memory of what a long-lived program replaced stays with it.
pub fn give_back_large_arrays() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: writes one word, which says where the next arrays come from; each knows where it came from itself, so those that there are go
    // back as before, and threads that allocate meanwhile find the word as it was or as it is.
    return unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20) } == 1;
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    return false;
}

/// Pages straight from the system. The standard allocator will not do for large alignments: it writes the zeros itself,
/// and so places every page on the node of the thread that allocates.
#[cfg(all(unix, not(miri)))]
mod map {
    use std::ptr::{self, NonNull};

    /// One private mapping of zero pages.
    #[derive(Clone, Copy)]
    pub(super) struct Pages {
        start: NonNull<u8>,
        bytes: usize,
    }

    impl Pages {
        /// Maps `bytes` (at least one), rounded up to whole pages, from a multiple of `align` (a power of two).
        pub(super) fn zeroed(bytes: usize, align: usize) -> Option<Self> {
            // SAFETY: asks for a constant of the system; no memory is involved.
            let page =
                usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|n| n.is_power_of_two())?;
            let bytes = bytes.checked_next_multiple_of(page)?;
            // A mapping begins on a page; a wider alignment is cut out of a longer one.
            let spare = align.saturating_sub(page);
            let mapped = Self::map(bytes.checked_add(spare)?)?;
            let head = mapped.start.as_ptr().align_offset(align.max(page));
            let (front, rest) = mapped.split(head);
            let (body, back) = rest.split(bytes);
            // SAFETY: front and back are whole pages of the mapping made above, and nothing points into them.
            unsafe {
                front.release();
                back.release();
            }
            Some(body)
        }

        fn map(bytes: usize) -> Option<Self> {
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
            // SAFETY: a new anonymous mapping at an address of the system's choice replaces no other.
            let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
            (start != libc::MAP_FAILED).then_some(())?;
            Some(Self { start: NonNull::new(start.cast())?, bytes })
        }

        /// Splits the range at `at`, which is a multiple of the page size and at most its length.
        fn split(self, at: usize) -> (Self, Self) {
            assert!(at <= self.bytes, "the alignment fits into the spare pages");
            // SAFETY: `at` is within the mapping or at its end.
            let back = unsafe { self.start.add(at) };
            (Self { start: self.start, bytes: at }, Self { start: back, bytes: self.bytes - at })
        }

        pub(super) fn start(self) -> NonNull<u8> {
            self.start
        }

        /// Advises against a huge page that would have bytes from both before and behind the byte `at`.
        pub(super) fn keep_small_around(self, at: usize) {
            let start = self.start.as_ptr();
            #[cfg(target_os = "linux")]
            if let Some(page) = super::huge_page_across(start.addr(), self.bytes, at) {
                let first = start.wrapping_add(page.start - start.addr());
                // SAFETY: whole pages of this mapping; the advice changes how they are backed, never what they hold.
                unsafe { libc::madvise(first.cast(), page.len(), libc::MADV_NOHUGEPAGE) };
            }
            let _ = (start, at);
        }

        /// Gives the pages back.
        ///
        /// # Safety
        /// Nothing may point into them any more, and they are given back once.
        pub(super) unsafe fn release(self) {
            if self.bytes > 0 {
                // SAFETY: whole pages of a mapping that this module made; the caller vouches for the rest. It can fail only
                // for want of room to note the split of a mapping, and then the pages stay, which harms nobody.
                unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
            }
        }
    }

    /// Advises the whole huge pages within a range.
    pub(super) fn advise_huge_pages(start: *mut u8, bytes: usize) {
        #[cfg(target_os = "linux")]
        if let Some(inside) = super::huge_pages_within(start.addr(), bytes) {
            let first = start.wrapping_add(inside.start - start.addr());
            // SAFETY: this advice changes how pages are backed, never what they hold; a range without a mapping, which the
            // callers do not pass, would be refused with an error.
            unsafe { libc::madvise(first.cast(), inside.len(), libc::MADV_HUGEPAGE) };
        }
        let _ = (start, bytes);
    }
}

/// Returns the addresses of the whole huge pages within `bytes` bytes from `start`; `None` when there are none.
#[cfg(any(target_os = "linux", test))]
fn huge_pages_within(start: usize, bytes: usize) -> Option<std::ops::Range<usize>> {
    let first = start.checked_next_multiple_of(HUGE_PAGE)?;
    let end = start.checked_add(bytes)? / HUGE_PAGE * HUGE_PAGE;
    (first < end).then_some(first..end)
}

/// Returns the addresses of those of `bytes` bytes from `start` that would share a huge page with both the byte `at` and the one before
/// it; `None` where a huge page begins there.
#[cfg(any(target_os = "linux", test))]
fn huge_page_across(start: usize, bytes: usize, at: usize) -> Option<std::ops::Range<usize>> {
    let first = (start + at) / HUGE_PAGE * HUGE_PAGE;
    let inside = first.max(start)..(first + HUGE_PAGE).min(start + bytes);
    (first < start + at && !inside.is_empty()).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(len: usize) {
        let mut buffer = AlignedBuffer::<u64>::zeroed(len).unwrap();
        let align = if len * 8 > HUGE_FROM { HUGE_PAGE } else { ALIGNMENT };
        assert_eq!(buffer.as_ptr().addr() % align, 0, "{len} items");
        assert_eq!(buffer.len(), len);
        let step = (len / 1000).max(1);
        for item in buffer.iter_mut().step_by(step) {
            assert_eq!(*item, 0);
            *item = 7;
        }
        if let Some(last) = buffer.last_mut() {
            *last = 7;
        }
        assert!(buffer.iter().step_by(step).chain(buffer.last()).all(|item| *item == 7));
    }

    #[test]
    fn buffers_of_every_source_are_aligned_zero_and_writable() {
        let mapped = MAP_FROM / 8;
        for len in [0, 1, 7, 8, 9, 1000, mapped - 1, mapped, mapped + 1] {
            check(len);
        }
        if !cfg!(miri) {
            for len in [HUGE_FROM / 8, HUGE_FROM / 8 + 1, (9 << 20) / 8 + 3] {
                check(len);
            }
        }
    }

    #[test]
    fn items_of_a_box_stay_where_they_are() {
        for len in [0, 1, 1000] {
            let items: Box<[u16]> = (0..len).collect();
            let address = items.as_ptr();
            let mut buffer = AlignedBuffer::from(items);
            assert_eq!(buffer.as_ptr(), address);
            assert!(buffer.iter().copied().eq(0..len));
            buffer.reverse();
            assert!(buffer.iter().copied().eq((0..len).rev()));
            buffer.split_pages_at(buffer.len());
        }
        assert_eq!(AlignedBuffer::from(vec![(); 9].into_boxed_slice()).len(), 9);
    }

    #[test]
    fn items_without_bytes_take_no_memory() {
        let buffer = AlignedBuffer::<()>::zeroed(usize::MAX).unwrap();
        assert_eq!(buffer.len(), usize::MAX);
    }

    #[test]
    fn too_many_items_are_an_error() {
        for len in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8 + 1] {
            assert!(matches!(AlignedBuffer::<u64>::zeroed(len), Err(Error::OutOfMemory { .. })), "{len}");
        }
        #[cfg(not(miri))]
        assert!(matches!(AlignedBuffer::<u8>::zeroed(1 << 60), Err(Error::OutOfMemory(bytes)) if bytes == 1 << 60));
    }

    #[test]
    fn buffers_move_between_threads_and_are_read_by_several() {
        let mut buffer = AlignedBuffer::<u32>::zeroed(64).unwrap();
        let pointer = buffer.as_mut_ptr();
        // SAFETY: 64 items were allocated and nobody else has them.
        unsafe { pointer.add(63).write(5) };
        let buffer = std::thread::spawn(move || {
            buffer[0] = 3;
            buffer
        });
        let buffer = buffer.join().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(buffer.iter().sum::<u32>(), 8));
            }
        });
    }

    /// Reads the kernel's own table of this process's pages: bit 63 says that a page is there.
    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn pages_of_a_large_buffer_are_untouched_until_written() {
        use std::os::unix::fs::FileExt;
        let table = std::fs::File::open("/proc/self/pagemap").unwrap();
        let present = |address: *const u8| {
            let mut entry = [0; 8];
            // SAFETY: asks for a constant of the system.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
            table.read_exact_at(&mut entry, address.addr() as u64 / page * 8).unwrap();
            u64::from_ne_bytes(entry) >> 63 == 1
        };
        let mut buffer = AlignedBuffer::<u8>::zeroed(16 << 20).unwrap();
        let (first, last) = (buffer.as_ptr(), buffer.as_ptr().wrapping_add(buffer.len() - 1));
        assert!(!present(first) && !present(last));
        buffer[(16 << 20) - 1] = 1;
        assert!(!present(first) && present(last));
    }

    #[test]
    fn advice_covers_the_huge_pages_within() {
        const M: usize = 1 << 20;
        assert_eq!(huge_pages_within(2 * M, 4 * M), Some(2 * M..6 * M));
        assert_eq!(huge_pages_within(2 * M + 1, 4 * M), Some(4 * M..6 * M));
        assert_eq!(huge_pages_within(2 * M + 1, 2 * M), None);
        assert_eq!(huge_pages_within(2 * M, 0), None);
        assert_eq!(huge_pages_within(usize::MAX - 5, 3), None);
    }

    #[test]
    fn pages_are_split_where_no_huge_page_begins() {
        const M: usize = 1 << 20;
        assert_eq!(huge_page_across(4 * M, 8 * M, 2 * M), None, "a huge page begins there");
        assert_eq!(huge_page_across(4 * M, 8 * M, 3 * M), Some(6 * M..8 * M));
        assert_eq!(huge_page_across(4 * M, 7 * M, 7 * M), Some(10 * M..11 * M), "what lies behind is another's");
        assert_eq!(huge_page_across(5 * M, 6 * M, 0), Some(5 * M..6 * M), "what lies before is another's");
        assert_eq!(huge_page_across(4 * M, 8 * M, 0), None);
        let buffer = AlignedBuffer::<u32>::zeroed(if cfg!(miri) { 100 } else { 3 * M }).unwrap();
        (0..=buffer.len()).step_by(buffer.len() / 4).for_each(|item| buffer.split_pages_at(item));
        assert!(buffer.iter().all(|&item| item == 0));
    }
}
