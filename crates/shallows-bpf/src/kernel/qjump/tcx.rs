//! tcx links, which libbpf-rs does not wrap.

use std::ptr::{self, NonNull};

use libbpf_rs::{AsRawLibbpf as _, Error, Link, ProgramMut};

/// Attaches a `tcx/egress` program to the device of this number, in this thread's network namespace.
pub(super) fn attach(program: &ProgramMut<'_>, index: i32) -> Result<Link, Error> {
    // SAFETY: the program lives for the call, and libbpf takes a null pointer for no options.
    #[allow(unsafe_code)]
    let link = unsafe {
        let program = program.as_libbpf_object();
        libbpf_sys::bpf_program__attach_tcx(program.as_ptr(), index, ptr::null())
    };
    match NonNull::new(link) {
        // SAFETY: libbpf has just made it, and nobody else has it.
        #[allow(unsafe_code)]
        Some(link) => Ok(unsafe { Link::from_ptr(link) }),
        None => Err(std::io::Error::last_os_error().into()),
    }
}
