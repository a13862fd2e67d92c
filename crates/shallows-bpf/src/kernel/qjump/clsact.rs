//! Filters of the clsact qdisc, where there is no tcx.

use std::os::fd::BorrowedFd;

use libbpf_rs::{Error, TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};

/// Ours among a device's filters.
const HANDLE: u32 = 0x5147;
const PRIORITY: u32 = 0x5147;

fn hook(program: BorrowedFd<'_>, index: i32) -> TcHook {
    TcHookBuilder::new(program)
        .ifindex(index)
        .handle(HANDLE)
        .priority(PRIORITY)
        .hook(TC_EGRESS)
}

/// Attaches a program to the device of this number, in this thread's network namespace.
pub(super) fn attach(program: BorrowedFd<'_>, index: i32) -> Result<(), Error> {
    let mut hook = hook(program, index);
    hook.create()?;
    hook.attach().map(drop)
}

/// The number of our program at the device, if it is there.
pub(super) fn query(program: BorrowedFd<'_>, index: i32) -> Option<u32> {
    hook(program, index).query().ok()
}

pub(super) fn detach(program: BorrowedFd<'_>, index: i32) -> Result<(), Error> {
    hook(program, index).detach()
}

/// Removes the qdisc.
pub(super) fn destroy(program: BorrowedFd<'_>, index: i32) -> Result<(), Error> {
    hook(program, index)
        .attach_point(TC_INGRESS | TC_EGRESS)
        .destroy()
}
