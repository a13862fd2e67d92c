//! Errors: reasons why an operation is not possible here.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::Controller;

/// The reason why the kernel does not do what it was asked for.
#[derive(Debug, Error)]
pub enum Error {
    /// Not root.
    #[error("BPF needs root: run the command with sudo")]
    NotRoot,
    /// The kernel does not describe its types.
    #[error(
        "the kernel has no BTF at /sys/kernel/btf/vmlinux: it needs CONFIG_DEBUG_INFO_BTF (all \
         major distributions have it since 2021)"
    )]
    NoBtf,
    /// The kernel cannot take congestion controllers.
    #[error(
        "the kernel takes no TCP congestion controllers from BPF: it needs Linux 6.4 or later \
         with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF"
    )]
    NoStructOps,
    /// A place where the BPF file system would not last.
    #[error(
        "this is the network namespace {0}, which has no {bpf}: run the command outside of `ip \
         netns exec`; a controller serves all namespaces",
        bpf = "/sys/fs/bpf"
    )]
    InNamespace(String),
    /// Loaded before.
    #[error("{0} is loaded; `shallows cc unload {0}` removes it")]
    AlreadyLoaded(Controller),
    /// The name is registered, but not pinned where we look.
    #[error(
        "the kernel has a controller called {} that was loaded elsewhere, perhaps by a live \
         run or in another container; end that, or unload it there", .0.kernel_name()
    )]
    NameTaken(Controller),
    /// Not loaded.
    #[error("{0} is not loaded; `shallows cc load {0}` loads it")]
    NotLoaded(Controller),
    /// A file operation failed.
    #[error("cannot {doing} {}", .path.display())]
    File {
        /// Attempted operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason why not.
        source: io::Error,
    },
    /// The kernel refused something.
    #[error("cannot {doing}")]
    Kernel {
        /// Attempted operation.
        doing: &'static str,
        /// The reason why not.
        source: io::Error,
    },
}
