//! Types as BTF has them: those of an object, and those of the running kernel.

use super::bytes::{slice, string_at, u16_at, u32_at};

pub(super) const INT: u32 = 1;
pub(super) const PTR: u32 = 2;
pub(super) const ARRAY: u32 = 3;
pub(super) const STRUCT: u32 = 4;
pub(super) const UNION: u32 = 5;
pub(super) const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
pub(super) const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const FLOAT: u32 = 16;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
pub(super) const ENUM64: u32 = 19;

const MAGIC: u16 = 0xEB9F;
const VERSION: u8 = 1;
/// A FUNC that is only declared.
const EXTERN: u32 = 2;

/// The types of an object or of the kernel, by number from 1; 0 is void.
pub(super) struct Btf {
    types: Vec<u8>,
    strings: Vec<u8>,
    /// Offset of each type.
    offsets: Vec<u32>,
}

/// The head of a type.
#[derive(Clone, Copy)]
pub(super) struct Type {
    pub(super) kind: u32,
    /// A struct's members or the like; of a FUNC, its linkage.
    count: u32,
    /// True if the offsets of members have the widths of bit fields with them.
    with_bits: bool,
    name: u32,
    /// A size, or the type that it refers to.
    pub(super) size_or_type: u32,
    /// Offset of what follows.
    rest: usize,
}

/// A member of a struct or union.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) type_id: u32,
    /// In bits, from the beginning of the struct.
    pub(super) offset: u32,
    /// Width of a bit field, 0 for others.
    pub(super) bits: u32,
}

/// An array.
pub(super) struct Array {
    pub(super) element: u32,
    pub(super) length: u32,
}

/// Typedefs and qualifiers before a type.
const LONGEST_CHAIN: u32 = 64;

impl Btf {
    /// None if it is no BTF, or of a version that is not known.
    pub(super) fn parse(file: &[u8]) -> Option<Self> {
        if u16_at(file, 0)? != MAGIC || *file.get(2)? != VERSION {
            return None;
        }
        let header = u32_at(file, 4)? as usize;
        let part = |at: usize| {
            let (offset, length) = (u32_at(file, at)? as usize, u32_at(file, at + 4)? as usize);
            slice(file, header + offset, length)
        };
        let mut btf = Self {
            types: part(8)?.to_vec(),
            strings: part(16)?.to_vec(),
            offsets: Vec::new(),
        };
        let mut offset = 0;
        while offset < btf.types.len() {
            btf.offsets.push(offset as u32);
            let found = btf.type_at(offset)?;
            offset = found.rest + found.rest_length()?;
        }
        Some(btf)
    }

    fn type_at(&self, offset: usize) -> Option<Type> {
        let info = u32_at(&self.types, offset + 4)?;
        Some(Type {
            kind: info >> 24 & 0x1F,
            count: info & 0xFFFF,
            with_bits: info >> 31 == 1,
            name: u32_at(&self.types, offset)?,
            size_or_type: u32_at(&self.types, offset + 8)?,
            rest: offset + 12,
        })
    }

    pub(super) fn get(&self, id: u32) -> Option<Type> {
        let offset = *self.offsets.get(id.checked_sub(1)? as usize)?;
        self.type_at(offset as usize)
    }

    pub(super) fn string(&self, offset: u32) -> Option<&str> {
        string_at(&self.strings, offset as usize)
    }

    pub(super) fn name(&self, found: Type) -> &str {
        self.string(found.name).unwrap_or_default()
    }

    /// The numbers of the types of a kind with this name.
    pub(super) fn named<'a>(&'a self, kind: u32, name: &'a str) -> impl Iterator<Item = u32> + 'a {
        (1..=self.offsets.len() as u32).filter(move |&id| {
            let found = self.get(id).filter(|found| found.kind == kind);
            found.is_some_and(|found| self.name(found) == name)
        })
    }

    /// The type of the variable with this name.
    pub(super) fn variable(&self, name: &str) -> Option<u32> {
        let variable = self.get(self.named(VAR, name).next()?)?;
        Some(variable.size_or_type)
    }

    /// The type behind typedefs and qualifiers, unless there are far too many.
    pub(super) fn bare(&self, mut id: u32) -> Option<(u32, Type)> {
        // In a malformed object they may form a circle.
        for _ in 0..LONGEST_CHAIN {
            let found = self.get(id)?;
            match found.kind {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => id = found.size_or_type,
                _ => return Some((id, found)),
            }
        }
        None
    }

    /// The size of a type, in bytes.
    pub(super) fn size(&self, id: u32) -> Option<u32> {
        self.size_within(id, LONGEST_CHAIN)
    }

    /// The same, with arrays within each other at most this often.
    fn size_within(&self, id: u32, depth: u32) -> Option<u32> {
        let (id, found) = self.bare(id)?;
        match found.kind {
            INT | STRUCT | UNION | ENUM | ENUM64 | FLOAT => Some(found.size_or_type),
            PTR => Some(8),
            ARRAY => {
                let array = self.array(id)?;
                let size = self.size_within(array.element, depth.checked_sub(1)?)?;
                size.checked_mul(array.length)
            }
            _ => None,
        }
    }

    /// Returns whether a type is a signed integer.
    pub(super) fn is_signed(&self, id: u32) -> bool {
        const SIGNED: u32 = 1 << 24;
        self.bare(id).is_some_and(|(_, found)| {
            found.kind == INT
                && u32_at(&self.types, found.rest).is_some_and(|int| int & SIGNED != 0)
        })
    }

    pub(super) fn array(&self, id: u32) -> Option<Array> {
        let (_, found) = self.bare(id)?;
        (found.kind == ARRAY).then_some(())?;
        Some(Array {
            element: u32_at(&self.types, found.rest)?,
            length: u32_at(&self.types, found.rest + 8)?,
        })
    }

    /// The members of a struct or union; none of other types.
    pub(super) fn members(&self, id: u32) -> impl Iterator<Item = Member<'_>> {
        let found = self.bare(id).map(|(_, found)| found);
        let found = found.filter(|found| [STRUCT, UNION].contains(&found.kind));
        let places = found.into_iter().flat_map(|found| {
            (0..found.count as usize).map(move |i| (found.rest + i * 12, found.with_bits))
        });
        places.filter_map(|(at, with_bits)| {
            let offset = u32_at(&self.types, at + 8)?;
            let (offset, bits) = if with_bits {
                (offset & 0xFF_FFFF, offset >> 24)
            } else {
                (offset, 0)
            };
            Some(Member {
                name: self.string(u32_at(&self.types, at)?)?,
                type_id: u32_at(&self.types, at + 4)?,
                offset,
                bits,
            })
        })
    }

    /// The member with this name.
    pub(super) fn member(&self, id: u32, name: &str) -> Option<Member<'_>> {
        self.members(id).find(|member| member.name == name)
    }

    /// The file for the kernel, which refuses what clang writes of sections and of functions that
    /// are only declared. Instead of these there are pointers to nothing, so that the numbers of all
    /// others stay.
    pub(super) fn for_kernel(&self) -> Option<Vec<u8>> {
        let mut types = Vec::new();
        for &offset in &self.offsets {
            let offset = offset as usize;
            let found = self.type_at(offset)?;
            if found.kind == DATASEC || (found.kind == FUNC && found.count == EXTERN) {
                let pointer = [0, PTR << 24, 0];
                types.extend(pointer.map(u32::to_le_bytes).as_flattened());
            } else {
                types.extend(slice(&self.types, offset, 12 + found.rest_length()?)?);
            }
        }
        let (types_length, strings_length) = (types.len() as u32, self.strings.len() as u32);
        let head = u32::from(MAGIC) | u32::from(VERSION) << 16;
        let header = [head, 24, 0, types_length, types_length, strings_length];
        let header = header.map(u32::to_le_bytes);
        Some([header.as_flattened(), &types, &self.strings].concat())
    }
}

impl Type {
    /// Number of bytes that follow the head; none for a kind that is not known.
    fn rest_length(self) -> Option<usize> {
        let count = self.count as usize;
        Some(match self.kind {
            INT | VAR | DECL_TAG => 4,
            ARRAY => 12,
            STRUCT | UNION | DATASEC | ENUM64 => 12 * count,
            ENUM | FUNC_PROTO => 8 * count,
            // Including forward declarations, of the number 7.
            PTR | 7..=FUNC | FLOAT | TYPE_TAG => 0,
            _ => return None,
        })
    }
}
