//! Loads the BPF objects of this crate into the kernel, without libbpf.
//!
//! It knows what these objects need and no more: maps without data sections, programs of one
//! function each, functions of the kernel, one struct_ops. [`sys`] has the system call, `elf` and
//! `btf` read the object, `relocate` fits it to the running kernel, `struct_ops` does so with a
//! struct of functions, [`object`] loads it. `redirect` has a program of its own.

mod btf;
mod bytes;
mod elf;
mod object;
mod redirect;
mod relocate;
mod struct_ops;
mod sys;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use std::io;

pub(crate) use object::{Kernel, Object};
pub use redirect::Redirect;
pub(crate) use sys::{LOCK, Link, Map, Program};

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
