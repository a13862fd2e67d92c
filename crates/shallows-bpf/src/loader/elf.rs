//! ELF files as clang writes them for BPF: 64 bits, little-endian, not linked.

use super::bytes::{slice, string_at, u16_at, u32_at, u64_at};

const MAGIC: [u8; 6] = [0x7F, b'E', b'L', b'F', 2, 1];
const EM_BPF: u16 = 247;
const SHT_SYMTAB: u32 = 2;
const SHT_REL: u32 = 9;
const STT_FUNC: u8 = 2;

/// A file, taken apart.
pub(super) struct Elf<'a> {
    pub(super) sections: Vec<Section<'a>>,
    pub(super) symbols: Vec<Symbol<'a>>,
}

pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
    kind: u32,
    link: usize,
    info: usize,
}

pub(super) struct Symbol<'a> {
    pub(super) name: &'a str,
    /// The section that it is in; 0 for a symbol of the kernel.
    pub(super) section: usize,
    pub(super) is_function: bool,
    pub(super) offset: usize,
    pub(super) size: usize,
}

/// A place that a symbol's address belongs in.
pub(super) struct Relocation {
    pub(super) offset: usize,
    pub(super) kind: u32,
    /// Among [`Elf::symbols`].
    pub(super) symbol: usize,
}

impl<'a> Elf<'a> {
    /// None if it is no such file.
    pub(super) fn parse(file: &'a [u8]) -> Option<Self> {
        if !file.starts_with(&MAGIC) || u16_at(file, 18)? != EM_BPF {
            return None;
        }
        let (headers, size) = (u64_at(file, 40)?, usize::from(u16_at(file, 58)?));
        if size == 0 {
            return None;
        }
        let headers = file.get(headers..)?.chunks_exact(size);
        let headers: Vec<&[u8]> = headers.take(u16_at(file, 60)?.into()).collect();
        let names = *headers.get(usize::from(u16_at(file, 62)?))?;
        let names = content(file, names)?;
        let sections = headers
            .iter()
            .map(|header| {
                Some(Section {
                    name: string_at(names, u32_at(header, 0)? as usize)?,
                    bytes: content(file, header)?,
                    kind: u32_at(header, 4)?,
                    link: u32_at(header, 40)? as usize,
                    info: u32_at(header, 44)? as usize,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        let table = sections.iter().find(|section| section.kind == SHT_SYMTAB)?;
        let names = sections.get(table.link)?.bytes;
        let symbols = table
            .bytes
            .chunks_exact(24)
            .map(|symbol| {
                Some(Symbol {
                    name: string_at(names, u32_at(symbol, 0)? as usize)?,
                    is_function: symbol[4] & 0xF == STT_FUNC,
                    section: u16_at(symbol, 6)?.into(),
                    offset: u64_at(symbol, 8)?,
                    size: u64_at(symbol, 16)?,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self { sections, symbols })
    }

    /// The number of the section with this name.
    pub(super) fn section(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|found| found.name == name)
    }

    /// The bytes of the section with this name.
    pub(super) fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        Some(self.sections[self.section(name)?].bytes)
    }

    /// The symbols of a section that have a name.
    pub(super) fn named_symbols(&self, section: usize) -> impl Iterator<Item = &Symbol<'a>> {
        let symbols = self.symbols.iter();
        symbols.filter(move |symbol| symbol.section == section && !symbol.name.is_empty())
    }

    /// The relocations of a section.
    pub(super) fn relocations(&self, section: usize) -> impl Iterator<Item = Relocation> {
        let tables = self.sections.iter();
        let tables = tables.filter(move |table| table.kind == SHT_REL && table.info == section);
        tables.flat_map(|table| {
            table.bytes.chunks_exact(16).filter_map(|entry| {
                Some(Relocation {
                    offset: u64_at(entry, 0)?,
                    kind: u32_at(entry, 8)?,
                    symbol: u32_at(entry, 12)? as usize,
                })
            })
        })
    }
}

fn content<'a>(file: &'a [u8], header: &[u8]) -> Option<&'a [u8]> {
    const SHT_NOBITS: u32 = 8;
    if u32_at(header, 4)? == SHT_NOBITS {
        return Some(&[]);
    }
    slice(file, u64_at(header, 24)?, u64_at(header, 32)?)
}
