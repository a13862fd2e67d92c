//! Asks for memory before it is needed.

/// Starts to bring the first cache line of `what` near, and waits for nothing.
///
/// It changes no result; where the machine has no such instruction it does nothing.
#[inline(always)]
#[expect(
    unsafe_code,
    reason = "the one instruction of the event loop that safe Rust lacks"
)]
pub(crate) fn prefetch<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads nothing that the program can see, and any address will do.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast());
    }
}
