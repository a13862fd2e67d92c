//! Programs.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use bytemuck::{Pod, Zeroable};

use super::{Link, address, address_mut, get, info, open, pin, raw, short};

const PROG_LOAD: i32 = 5;
const PROG_GET_FD_BY_ID: i32 = 13;

/// Kind of a program at loading.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::loader) struct ProgramKind {
    /// `BPF_PROG_TYPE_*`
    pub(in crate::loader) kind: u32,
    /// `BPF_TRACE_ITER` and the like, or the number of a struct's member.
    pub(in crate::loader) attach_type: u32,
    /// A type of the kernel.
    pub(in crate::loader) attach_btf: u32,
}

/// A program in the kernel.
#[derive(Debug)]
pub(crate) struct Program {
    fd: OwnedFd,
    attach_type: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ProgramAttributes {
    kind: u32,
    instructions: u32,
    address: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach_type: u32,
    btf: u32,
    func_info_size: u32,
    func_info: u64,
    func_info_count: u32,
    line_info_size: u32,
    line_info: u64,
    line_info_count: u32,
    attach_btf: u32,
}

/// `struct bpf_prog_info`, as far as it is needed.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ProgramInfo {
    kind: u32,
    pub(crate) id: u32,
    unused: [u64; 23],
    pub(crate) run_time_ns: u64,
    pub(crate) runs: u64,
}

impl Program {
    /// Loads one; if the verifier refuses it, the error has its last words.
    pub(in crate::loader) fn load(
        name: &str,
        kind: ProgramKind,
        license: &CStr,
        instructions: &[u8],
    ) -> io::Result<Self> {
        let mut attributes = ProgramAttributes {
            kind: kind.kind,
            instructions: (instructions.len() / 8) as u32,
            address: address(instructions),
            license: license.as_ptr() as u64,
            name: short(name),
            attach_type: kind.attach_type,
            attach_btf: kind.attach_btf,
            ..ProgramAttributes::zeroed()
        };
        // SAFETY: the slice has that many instructions, the licence ends with a 0, and no log is
        // asked for.
        let loaded = unsafe { open(PROG_LOAD, &mut attributes) };
        let fd = loaded.map_err(|error| {
            let mut log = vec![0; 1 << 20];
            attributes.log_level = 1;
            attributes.log_size = log.len() as u32;
            attributes.log = address_mut(&mut log);
            // SAFETY: as before, and the log has as much room as is said.
            let _ = unsafe { open(PROG_LOAD, &mut attributes) };
            refused(name, &error, &log)
        })?;
        Ok(Self {
            fd,
            attach_type: kind.attach_type,
        })
    }

    /// One that is pinned.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            fd: get(path)?,
            attach_type: 0,
        })
    }

    pub(crate) fn with_id(id: u32) -> io::Result<Self> {
        // SAFETY: the block has no addresses.
        let fd = unsafe { open(PROG_GET_FD_BY_ID, &mut [id, 0, 0]) }?;
        Ok(Self { fd, attach_type: 0 })
    }

    pub(crate) fn info(&self) -> io::Result<ProgramInfo> {
        info(self.fd.as_fd())
    }

    pub(crate) fn pin(&self, path: &Path) -> io::Result<()> {
        pin(self.fd.as_fd(), path)
    }

    /// Attaches it to what its section says, of a cgroup.
    pub(crate) fn attach_to_cgroup(&self, cgroup: BorrowedFd<'_>) -> io::Result<Link> {
        Link::create(self.raw(), raw(cgroup), self.attach_type)
    }

    /// Attaches it to the egress of a device of this thread's network namespace.
    pub(crate) fn attach_to_egress(&self, ifindex: u32) -> io::Result<Link> {
        const TCX_EGRESS: u32 = 47;
        Link::create(self.raw(), ifindex, TCX_EGRESS)
    }

    /// Attaches it where frames come in by a device of this thread's network namespace.
    pub(crate) fn attach_to_ingress(&self, ifindex: u32) -> io::Result<Link> {
        const TCX_INGRESS: u32 = 46;
        Link::create(self.raw(), ifindex, TCX_INGRESS)
    }

    /// Attaches it to a device of this thread's network namespace before the stack: in the driver, or
    /// in the kernel for drivers that cannot.
    pub(in crate::loader) fn attach_to_xdp(&self, ifindex: u32) -> io::Result<Link> {
        const XDP: u32 = 37;
        const IN_DRIVER: u32 = 1 << 2;
        const IN_KERNEL: u32 = 1 << 1;
        let attach = |flags| Link::create_with(self.raw(), ifindex, XDP, flags);
        attach(IN_DRIVER).or_else(|_| attach(IN_KERNEL))
    }

    /// Attaches an iterator.
    pub(crate) fn attach_iterator(&self) -> io::Result<Link> {
        Link::create(self.raw(), 0, self.attach_type)
    }

    pub(in crate::loader) fn raw(&self) -> u32 {
        raw(self.fd.as_fd())
    }
}

fn refused(name: &str, error: &io::Error, log: &[u8]) -> io::Error {
    let log = String::from_utf8_lossy(log);
    let lines: Vec<&str> = log.trim_end_matches('\0').trim().lines().collect();
    let last = &lines[lines.len().saturating_sub(8)..];
    let why = if last.is_empty() {
        String::new()
    } else {
        format!("; the kernel's verifier says:\n{}", last.join("\n"))
    };
    io::Error::new(error.kind(), format!("program {name}: {error}{why}"))
}

/// Running a program on memory of ours.
#[cfg(test)]
mod run {
    use super::*;
    use crate::loader::sys::bpf;

    const PROG_TEST_RUN: i32 = 10;

    #[derive(Clone, Copy, Pod, Zeroable)]
    #[repr(C)]
    struct Attributes {
        program: u32,
        answer: u32,
        input_size: u32,
        output_size: u32,
        input: u64,
        output: u64,
        repeat: u32,
        duration: u32,
        context_size: u32,
        context_out_size: u32,
        context: u64,
        context_out: u64,
        flags: u32,
        cpu: u32,
        batch: u32,
        padding: u32,
    }

    impl Program {
        /// Runs it on a frame so many times: its last answer, and the frame afterwards.
        pub(crate) fn run(
            &self,
            context: &[u8],
            frame: &[u8],
            repeat: u32,
        ) -> io::Result<(u32, Vec<u8>)> {
            let mut output = vec![0; frame.len() + 64];
            let mut attributes = Attributes {
                program: self.raw(),
                input_size: frame.len() as u32,
                output_size: output.len() as u32,
                input: address(frame),
                output: address_mut(&mut output),
                repeat,
                context_size: context.len() as u32,
                // The kernel takes none at no address only.
                context: if context.is_empty() {
                    0
                } else {
                    address(context)
                },
                ..Attributes::zeroed()
            };
            // SAFETY: the slices are as long as is said.
            unsafe { bpf(PROG_TEST_RUN, &mut attributes) }?;
            output.truncate(attributes.output_size as usize);
            Ok((attributes.answer, output))
        }
    }
}
