//! From an object file to maps, programs and controllers in the kernel.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use super::btf::{self, Btf};
use super::elf::{Elf, Relocation, Symbol};
use super::relocate::{Relocator, records};
use super::struct_ops::StructOps;
use super::sys::{self, Link, Map, MapAttributes, Program, ProgramKind};
use super::{bytes, malformed};

/// The address of a map or of the like, in a load of 64 bits.
const R_BPF_64_64: u32 = 1;
/// The target of a call.
const R_BPF_64_32: u32 = 10;
/// Kinds of a call's or a load's number: `BPF_PSEUDO_MAP_FD`, `BPF_PSEUDO_KFUNC_CALL`.
const MAP_FD: u8 = 1;
const KERNEL_FUNCTION: u8 = 2;

/// The types of the running kernel.
pub(crate) struct Kernel(Btf);

impl Kernel {
    /// The kernel's description of its types.
    pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";

    pub(crate) fn read() -> io::Result<Self> {
        let btf = Btf::parse(&fs::read(Self::BTF)?);
        btf.map(Self).ok_or_else(|| malformed("the kernel's BTF"))
    }

    /// Returns whether it has a struct of this name.
    pub(crate) fn has_struct(&self, name: &str) -> bool {
        self.0.named(btf::STRUCT, name).next().is_some()
    }

    #[cfg(test)]
    pub(super) fn of(types: Btf) -> Self {
        Self(types)
    }

    pub(super) fn types(&self) -> &Btf {
        &self.0
    }

    /// The number of its type of this kind and name.
    pub(super) fn find(&self, kind: u32, name: &str) -> io::Result<u32> {
        self.0.named(kind, name).next().ok_or_else(|| {
            let problem = format!("the kernel has no {name}");
            io::Error::new(io::ErrorKind::Unsupported, problem)
        })
    }
}

/// An object in the kernel.
#[derive(Debug)]
pub(crate) struct Object {
    maps: Vec<(String, Map)>,
    programs: Vec<Program>,
    struct_ops: Option<Map>,
}

impl Object {
    /// Loads all of an object file.
    pub(crate) fn load(file: &[u8], kernel: &Kernel) -> io::Result<Self> {
        Loader::new(file, kernel)?.load()
    }

    /// The map with this name.
    pub(crate) fn map(&self, name: &str) -> &Map {
        let map = self.maps.iter().find(|(found, _)| found == name);
        &map.unwrap_or_else(|| panic!("the object has a map {name}"))
            .1
    }

    /// Its programs, but for those of a struct_ops.
    pub(crate) fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Registers its struct_ops.
    pub(crate) fn register(&self) -> io::Result<Link> {
        let map = self.struct_ops.as_ref();
        Link::register(map.ok_or_else(|| malformed("an object without struct_ops"))?)
    }
}

struct Loader<'a> {
    elf: Elf<'a>,
    btf: Btf,
    kernel: &'a Kernel,
    license: CString,
}

impl<'a> Loader<'a> {
    fn new(file: &'a [u8], kernel: &'a Kernel) -> io::Result<Self> {
        let parsed = (|| {
            let elf = Elf::parse(file)?;
            let btf = Btf::parse(elf.bytes(".BTF")?)?;
            let license = bytes::string_at(elf.bytes("license")?, 0)?;
            let license = CString::new(license).ok()?;
            Some((elf, btf, license))
        })();
        let (elf, btf, license) = parsed.ok_or_else(|| malformed("no BPF object"))?;
        Ok(Self {
            elf,
            btf,
            kernel,
            license,
        })
    }

    fn load(&self) -> io::Result<Object> {
        let types = self.btf.for_kernel();
        let types = types.ok_or_else(|| malformed("the types of an object"))?;
        let types = sys::load_btf(&types)?;
        let maps = self.create_maps(types.as_fd())?;
        let struct_ops = StructOps::find(&self.elf, &self.btf, self.kernel)?;
        let mut programs = Vec::new();
        for section in 0..self.elf.sections.len() {
            let is_program = |symbol: &&Symbol<'_>| symbol.is_function && symbol.section == section;
            let functions: Vec<_> = self.elf.symbols.iter().filter(is_program).collect();
            if functions.is_empty() {
                continue;
            }
            let code = self.link(section, &maps)?;
            for function in functions {
                let kind = match &struct_ops {
                    Some(ops) => ops.kind(function.name)?,
                    None => self.kind(self.elf.sections[section].name)?,
                };
                let instructions = bytes::slice(&code, function.offset, function.size)
                    .ok_or_else(|| malformed("a function outside of its section"))?;
                let program = Program::load(function.name, kind, &self.license, instructions)?;
                programs.push((function.name, program));
            }
        }
        let struct_ops = struct_ops
            .map(|ops| ops.create(types.as_fd(), &programs))
            .transpose()?;
        Ok(Object {
            maps,
            programs: programs.into_iter().map(|(_, program)| program).collect(),
            struct_ops,
        })
    }

    fn create_maps(&self, types: BorrowedFd<'_>) -> io::Result<Vec<(String, Map)>> {
        let Some(section) = self.elf.section(".maps") else {
            return Ok(Vec::new());
        };
        self.elf
            .named_symbols(section)
            .map(|symbol| {
                let definition = self.btf.variable(symbol.name);
                let attributes = definition.and_then(|id| self.map_attributes(id));
                let attributes = attributes.ok_or_else(|| malformed("a map of an unknown kind"))?;
                let map = Map::create(symbol.name, Some(types), &attributes)?;
                Ok((symbol.name.to_owned(), map))
            })
            .collect()
    }

    /// Attributes in a map's definition: its members point to arrays as long as a number, or to
    /// types.
    fn map_attributes(&self, definition: u32) -> Option<MapAttributes> {
        let btf = &self.btf;
        let mut attributes = MapAttributes::default();
        for member in btf.members(definition) {
            let (_, pointer) = btf.bare(member.type_id)?;
            let pointee = pointer.size_or_type;
            let number = || Some(btf.array(pointee)?.length);
            match member.name {
                "type" => attributes.kind = number()?,
                "max_entries" => attributes.max_entries = number()?,
                "key" => {
                    attributes.btf_key = pointee;
                    attributes.key_size = btf.size(pointee)?;
                }
                "value" => {
                    attributes.btf_value = pointee;
                    attributes.value_size = btf.size(pointee)?;
                }
                _ => return None,
            }
        }
        Some(attributes)
    }

    /// The code of a section with the numbers of maps and of the kernel's functions and types.
    fn link(&self, section: usize, maps: &[(String, Map)]) -> io::Result<Vec<u8>> {
        let mut code = self.elf.sections[section].bytes.to_vec();
        for relocation in self.elf.relocations(section) {
            self.link_symbol(&mut code, &relocation, maps)?;
        }
        let ext = self.elf.bytes(".BTF.ext").unwrap_or_default();
        let all = records(&self.btf, ext).ok_or_else(|| malformed("BTF.ext"))?;
        let mut relocator = Relocator::new(&self.btf, &self.kernel.0);
        let name = self.elf.sections[section].name;
        for (_, records) in all.iter().filter(|(found, _)| *found == name) {
            for record in records {
                relocator.apply(&mut code, record)?;
            }
        }
        Ok(code)
    }

    fn link_symbol(
        &self,
        code: &mut [u8],
        relocation: &Relocation,
        maps: &[(String, Map)],
    ) -> io::Result<()> {
        let symbol = self.elf.symbols.get(relocation.symbol);
        let symbol = symbol.ok_or_else(|| malformed("a relocation without a symbol"))?;
        let map = maps.iter().find(|(name, _)| name == symbol.name);
        let (source, number) = match (relocation.kind, map) {
            (R_BPF_64_64, Some((_, map))) => (MAP_FD, map.raw()),
            (R_BPF_64_32, None) if symbol.section == 0 => {
                (KERNEL_FUNCTION, self.kernel.find(btf::FUNC, symbol.name)?)
            }
            _ => {
                let problem = format!("a reference to {:?}, which is no map", symbol.name);
                return Err(malformed(&problem));
            }
        };
        let at = relocation.offset;
        let instruction = code.get_mut(at..at + 8);
        let instruction =
            instruction.ok_or_else(|| malformed("a relocation outside of its section"))?;
        instruction[1] = instruction[1] & 0xF | source << 4;
        instruction[4..8].copy_from_slice(&number.to_le_bytes());
        Ok(())
    }

    /// Kind of a program, by the name of its section.
    fn kind(&self, section: &str) -> io::Result<ProgramKind> {
        const SCHED_CLS: u32 = 3;
        const CGROUP_SOCK: u32 = 9;
        const SOCK_OPS: u32 = 13;
        const CGROUP_SOCK_ADDR: u32 = 18;
        const TRACING: u32 = 26;
        const TRACE_ITER: u32 = 28;
        let (kind, attach_type, attach_btf) = match section {
            "tc" | "tcx/egress" | "tcx/ingress" => (SCHED_CLS, 0, 0),
            "cgroup/sock_create" => (CGROUP_SOCK, 2, 0),
            "sockops" => (SOCK_OPS, 3, 0),
            "cgroup/bind4" => (CGROUP_SOCK_ADDR, 8, 0),
            "cgroup/bind6" => (CGROUP_SOCK_ADDR, 9, 0),
            "cgroup/connect4" => (CGROUP_SOCK_ADDR, 10, 0),
            "cgroup/connect6" => (CGROUP_SOCK_ADDR, 11, 0),
            "cgroup/sendmsg4" => (CGROUP_SOCK_ADDR, 14, 0),
            "cgroup/sendmsg6" => (CGROUP_SOCK_ADDR, 15, 0),
            "iter/tcp" => {
                let iterator = self.kernel.find(btf::FUNC, "bpf_iter_tcp")?;
                (TRACING, TRACE_ITER, iterator)
            }
            _ => return Err(malformed("a program in an unknown section")),
        };
        Ok(ProgramKind {
            kind,
            attach_type,
            attach_btf,
        })
    }
}
