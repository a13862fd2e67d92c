//! A struct of functions for the kernel, such as `tcp_congestion_ops`.
//!
//! Members are found by name: the kernel has more of them, and in another order.

use std::io;
use std::os::fd::BorrowedFd;

use super::btf::{self, Btf};
use super::bytes::slice;
use super::elf::Elf;
use super::malformed;
use super::object::Kernel;
use super::sys::{Map, MapAttributes, Program, ProgramKind};

const SECTION: &str = ".struct_ops.link";

/// The struct of an object, as the kernel wants it.
pub(super) struct StructOps<'a> {
    name: &'a str,
    /// The kernel's struct.
    type_id: u32,
    /// The struct that the kernel wraps it in.
    wrapper: u32,
    /// The wrapper's bytes, without functions.
    value: Vec<u8>,
    functions: Vec<Function<'a>>,
}

struct Function<'a> {
    name: &'a str,
    /// The number of the member in the kernel's struct.
    member: u32,
    /// The place in `value`.
    at: usize,
}

impl<'a> StructOps<'a> {
    /// None if the object has no such struct.
    pub(super) fn find(elf: &Elf<'a>, local: &'a Btf, kernel: &Kernel) -> io::Result<Option<Self>> {
        let Some(section) = elf.section(SECTION) else {
            return Ok(None);
        };
        let symbol = elf.named_symbols(section).next();
        let ours = symbol.and_then(|symbol| local.variable(symbol.name));
        let found = ours.and_then(|id| Some((id, local.bare(id)?.1)));
        let (ours, found) = found.ok_or_else(|| malformed("struct_ops without a type"))?;
        let name = local.name(found);
        let type_id = kernel.find(btf::STRUCT, name)?;
        let wrapper = kernel.find(btf::STRUCT, &format!("bpf_struct_ops_{name}"))?;
        let types = kernel.types();
        let size = types.size(wrapper).unwrap_or_default();
        let mut ops = Self {
            name,
            type_id,
            wrapper,
            value: vec![0; size as usize],
            functions: Vec::new(),
        };
        let data = types.member(wrapper, "data").ok_or_else(|| lacks("data"))?;
        for member in local.members(ours) {
            let theirs = types.members(type_id).zip(0..);
            let theirs = { theirs }.find(|(theirs, _)| theirs.name == member.name);
            let (theirs, number) = theirs.ok_or_else(|| lacks(member.name))?;
            let at = ((data.offset + theirs.offset) / 8) as usize;
            let from = (member.offset / 8) as usize;
            let function = elf.relocations(section).find(|place| place.offset == from);
            if let Some(function) = function {
                let symbol = elf.symbols.get(function.symbol);
                let symbol = symbol.ok_or_else(|| malformed("a function without a name"))?;
                ops.functions.push(Function {
                    name: symbol.name,
                    member: number,
                    at,
                });
                continue;
            }
            let size = local.size(member.type_id).unwrap_or_default();
            let bytes = slice(elf.sections[section].bytes, from, size as usize);
            let place = ops.value.get_mut(at..at + size as usize);
            match (bytes, place) {
                (Some(bytes), Some(place)) if types.size(theirs.type_id) == Some(size) => {
                    place.copy_from_slice(bytes);
                }
                _ => return Err(malformed("a member of another size than the kernel's")),
            }
        }
        Ok(Some(ops))
    }

    /// Kind that the program of this name is loaded as.
    pub(super) fn kind(&self, program: &str) -> io::Result<ProgramKind> {
        const STRUCT_OPS: u32 = 27;
        let function = self.functions.iter().find(|found| found.name == program);
        let function = function.ok_or_else(|| malformed("a function of no struct"))?;
        Ok(ProgramKind {
            kind: STRUCT_OPS,
            attach_type: function.member,
            attach_btf: self.type_id,
        })
    }

    #[cfg(test)]
    pub(super) fn value(&self) -> &[u8] {
        &self.value
    }

    /// The struct in the kernel, to be registered. The kernel asks for the object's types, too.
    pub(super) fn create(
        mut self,
        types: BorrowedFd<'_>,
        programs: &[(&str, Program)],
    ) -> io::Result<Map> {
        const STRUCT_OPS: u32 = 26;
        /// `BPF_F_LINK`: a link registers it.
        const BY_LINK: u32 = 1 << 13;
        for function in &self.functions {
            let program = programs.iter().find(|(name, _)| *name == function.name);
            let (_, program) = program.ok_or_else(|| malformed("a function without code"))?;
            let place = self.value.get_mut(function.at..function.at + 8);
            let place = place.ok_or_else(|| malformed("a function outside of its struct"))?;
            place.copy_from_slice(&u64::from(program.raw()).to_le_bytes());
        }
        let attributes = MapAttributes {
            kind: STRUCT_OPS,
            key_size: 4,
            value_size: self.value.len() as u32,
            max_entries: 1,
            flags: BY_LINK,
            btf_vmlinux_value: self.wrapper,
            ..MapAttributes::default()
        };
        let map = Map::create(self.name, Some(types), &attributes)?;
        map.set_bytes(0u32, &self.value, 0)?;
        Ok(map)
    }
}

fn lacks(member: &str) -> io::Error {
    let problem = format!("the kernel's struct has no member {member}");
    io::Error::new(io::ErrorKind::Unsupported, problem)
}
