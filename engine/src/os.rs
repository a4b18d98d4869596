//! Temporary.
#![allow(unsafe_code)]
use crate::Error;
pub struct AlignedBuffer<T> { ptr: *mut T, layout: std::alloc::Layout }
impl<T: bytemuck::Zeroable> AlignedBuffer<T> {
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let layout = std::alloc::Layout::from_size_align(len * size_of::<T>(), if len * size_of::<T>() > 4 << 20 { 2 << 20 } else { 64 }).map_err(|_| Error::OutOfMemory { needed_bytes: len })?;
        let ptr = if layout.size() == 0 { std::ptr::without_provenance_mut(64) } else { unsafe { std::alloc::alloc_zeroed(layout) } };
        Ok(Self { ptr: ptr.cast(), layout })
    }
    pub fn as_mut_ptr(&mut self) -> *mut T { self.ptr }
}
impl<T> Drop for AlignedBuffer<T> { fn drop(&mut self) { if self.layout.size() > 0 { unsafe { std::alloc::dealloc(self.ptr.cast(), self.layout) } } } }
pub fn pin_current_thread(_core: usize) -> bool { false }
pub fn available_memory_bytes() -> Option<u64> { None }
