//! CO-RE: fits the instructions of an object to the structs of the running kernel.
//!
//! clang notes every access to a struct with `preserve_access_index`: the instruction, the struct
//! and the indices of members on the way. The members are looked up by name in the kernel's BTF. An
//! access to what this kernel does not have becomes an instruction that the verifier refuses, unless
//! it never runs because the program has asked before (`bpf_core_field_exists`).

use std::collections::BTreeMap;
use std::io;

use super::btf::{self, Btf, Member};
use super::bytes::{slice, u32_at};
use super::malformed;

/// Properties of a field that an instruction can need.
const BYTE_OFFSET: u32 = 0;
const BYTE_SIZE: u32 = 1;
const EXISTS: u32 = 2;
const SIGNED: u32 = 3;
const LEFT_SHIFT: u32 = 4;
const RIGHT_SHIFT: u32 = 5;

/// Classes of instructions, their lowest three bits.
const LD: u8 = 0;
const LDX: u8 = 1;
const ST: u8 = 2;
const STX: u8 = 3;
const ALU: u8 = 4;
const ALU64: u8 = 7;

/// An instruction to be fitted.
pub(super) struct Record {
    /// In bytes, from the beginning of the section.
    offset: usize,
    root: u32,
    /// Such as "0:3:1".
    access: u32,
    kind: u32,
}

#[cfg(test)]
impl Record {
    pub(super) fn new(offset: usize, root: u32, access: u32, kind: u32) -> Self {
        Self {
            offset,
            root,
            access,
            kind,
        }
    }

    /// Returns whether it accesses a bit field; clang and the kernel differ in the words that they take.
    pub(super) fn is_of_bits(&self, local: &Btf) -> Option<bool> {
        let steps = steps(local, self.root, local.string(self.access)?)?;
        Some(find(local, self.root, &steps)?.bits != 0)
    }
}

/// Bytes of a [`Record`] in an object.
const RECORD: usize = 16;

/// The instructions to be fitted, by the names of their sections.
pub(super) fn records<'a>(btf: &'a Btf, ext: &[u8]) -> Option<Vec<(&'a str, Vec<Record>)>> {
    let header = u32_at(ext, 4)? as usize;
    // Objects without any have a shorter header.
    if header < 32 {
        return Some(Vec::new());
    }
    let (offset, length) = (u32_at(ext, 24)? as usize, u32_at(ext, 28)? as usize);
    let mut rest = slice(ext, header + offset, length)?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    // Later kernels may have longer records, and none has shorter ones.
    let size = Some(u32_at(rest, 0)? as usize).filter(|&size| size >= RECORD)?;
    rest = rest.get(4..)?;
    let mut sections = Vec::new();
    while !rest.is_empty() {
        let (name, count) = (u32_at(rest, 0)?, u32_at(rest, 4)? as usize);
        let length = count.checked_mul(size)?;
        let records = slice(rest, 8, length)?.chunks_exact(size).map(|record| {
            Some(Record {
                offset: u32_at(record, 0)? as usize,
                root: u32_at(record, 4)?,
                access: u32_at(record, 8)?,
                kind: u32_at(record, 12)?,
            })
        });
        sections.push((btf.string(name)?, records.collect::<Option<_>>()?));
        rest = rest.get(8 + length..)?;
    }
    Some(sections)
}

/// A step from a struct to one of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Member(&'a str),
    Element(u32),
}

/// A field, in bits from the beginning of the struct that the way began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: u32,
    /// Width of a bit field, 0 for others.
    bits: u32,
    type_id: u32,
}

/// Fits instructions of one object to one kernel.
pub(super) struct Relocator<'a> {
    local: &'a Btf,
    kernel: &'a Btf,
    /// The kernel's structs of a name, which take a while to find.
    structs: BTreeMap<String, Vec<u32>>,
}

impl<'a> Relocator<'a> {
    pub(super) fn new(local: &'a Btf, kernel: &'a Btf) -> Self {
        Self {
            local,
            kernel,
            structs: BTreeMap::new(),
        }
    }

    /// Fits one instruction.
    pub(super) fn apply(&mut self, section: &mut [u8], record: &Record) -> io::Result<()> {
        let local = self.local;
        let parsed = (|| {
            let steps = steps(local, record.root, local.string(record.access)?)?;
            Some((find(local, record.root, &steps)?, steps))
        })();
        let (field, steps) =
            parsed.ok_or_else(|| malformed("an access that its own types do not explain"))?;
        let found = self.find_in_kernel(record.root, &steps, field)?;
        if record.kind == EXISTS {
            return write(section, record.offset, u32::from(found.is_some()));
        }
        let Some(found) = found else {
            return poison(section, record.offset);
        };
        let value = value(self.kernel, found, record.kind)
            .ok_or_else(|| malformed("an access of an unknown kind"))?;
        write(section, record.offset, value)?;
        if record.kind == BYTE_OFFSET {
            self.resize(section, record.offset, field, found)?;
        }
        Ok(())
    }

    /// The field that the kernel has for one of ours. Several structs may have the name of its
    /// struct; those with such a field have to agree on it.
    fn find_in_kernel(
        &mut self,
        root: u32,
        steps: &[Step<'_>],
        field: Field,
    ) -> io::Result<Option<Field>> {
        let (local, kernel) = (self.local, self.kernel);
        let (_, root) = local
            .bare(root)
            .ok_or_else(|| malformed("an access to nothing"))?;
        let name = local.name(root);
        let structs = self
            .structs
            .entry(name.to_owned())
            .or_insert_with(|| kernel.named(root.kind, name).collect());
        let mut found = structs
            .iter()
            .filter_map(|&id| find(kernel, id, steps))
            .filter(|found| are_alike(local, field.type_id, kernel, found.type_id));
        let first = found.next();
        if found.any(|other| first.is_some_and(|first| !is_at_same_place(first, other))) {
            let problem = format!("the kernel has several structs {name}, unlike each other");
            return Err(malformed(&problem));
        }
        Ok(first)
    }

    /// Has a load or store take as many bytes as the kernel's field has, where ours has more or
    /// fewer. The sign of a number would be lost.
    fn resize(&self, section: &mut [u8], at: usize, ours: Field, theirs: Field) -> io::Result<()> {
        let code = section[at];
        let sizes = (
            self.local.size(ours.type_id),
            self.kernel.size(theirs.type_id),
        );
        let is_same = sizes.0 == sizes.1 || ours.bits != 0 || theirs.bits != 0;
        if is_same || ![LDX, ST, STX].contains(&(code & 7)) {
            return Ok(());
        }
        let is_signed = self.local.is_signed(ours.type_id) || self.kernel.is_signed(theirs.type_id);
        let size = match sizes.1 {
            Some(4) => 0x00,
            Some(2) => 0x08,
            Some(1) => 0x10,
            Some(8) => 0x18,
            _ => return Err(malformed("an access to a field of an odd size")),
        };
        if is_signed {
            return Err(malformed(
                "a signed field that has another size in this kernel",
            ));
        }
        section[at] = code & !0x18 | size;
        Ok(())
    }
}

fn is_at_same_place(one: Field, other: Field) -> bool {
    (one.offset, one.bits) == (other.offset, other.bits)
}

/// The way from a struct to a field by names. Members without a name are passed over: they may be
/// arranged in another way in the kernel.
fn steps<'a>(btf: &'a Btf, root: u32, access: &str) -> Option<Vec<Step<'a>>> {
    let mut indices = access.split(':').map(str::parse::<u32>);
    // The first would be that of an array of such structs.
    if indices.next()?.ok()? != 0 {
        return None;
    }
    let mut steps = Vec::new();
    let mut at = root;
    for index in indices {
        let index = index.ok()?;
        if let Some(array) = btf.array(at) {
            steps.push(Step::Element(index));
            at = array.element;
        } else {
            let member = btf.members(at).nth(index as usize)?;
            if !member.name.is_empty() {
                steps.push(Step::Member(member.name));
            }
            at = member.type_id;
        }
    }
    Some(steps)
}

fn find(btf: &Btf, root: u32, steps: &[Step<'_>]) -> Option<Field> {
    let mut field = Field {
        offset: 0,
        bits: 0,
        type_id: root,
    };
    for step in steps {
        field = match *step {
            Step::Member(name) => {
                let member = member(btf, field.type_id, name, DEEPEST)?;
                Field {
                    offset: field.offset.checked_add(member.offset)?,
                    bits: member.bits,
                    type_id: member.type_id,
                }
            }
            Step::Element(index) => {
                let element = btf.array(field.type_id)?.element;
                let bits = btf.size(element)?.checked_mul(8)?.checked_mul(index)?;
                Field {
                    offset: field.offset.checked_add(bits)?,
                    bits: 0,
                    type_id: element,
                }
            }
        };
    }
    Some(field)
}

/// Members without a name are within each other at most this often: types may be cyclic.
const DEEPEST: u32 = 8;

/// The member with this name, also within members without one.
fn member<'a>(btf: &'a Btf, id: u32, name: &str, depth: u32) -> Option<Member<'a>> {
    btf.members(id).find_map(|found| {
        if found.name == name {
            return Some(found);
        }
        if !found.name.is_empty() {
            return None;
        }
        let inner = member(btf, found.type_id, name, depth.checked_sub(1)?)?;
        Some(Member {
            offset: found.offset.checked_add(inner.offset)?,
            ..inner
        })
    })
}

/// Returns whether two fields may stand for each other: both numbers, both pointers and so on.
fn are_alike(local: &Btf, ours: u32, kernel: &Btf, theirs: u32) -> bool {
    let (Some((_, one)), Some((_, other))) = (local.bare(ours), kernel.bare(theirs)) else {
        return false;
    };
    if let (Some(one), Some(other)) = (local.array(ours), kernel.array(theirs)) {
        return are_alike(local, one.element, kernel, other.element);
    }
    let class = |kind| match kind {
        btf::UNION => btf::STRUCT,
        btf::ENUM64 => btf::ENUM,
        kind => kind,
    };
    class(one.kind) == class(other.kind)
}

/// Value of a field's property that an instruction needs.
fn value(btf: &Btf, field: Field, kind: u32) -> Option<u32> {
    let mut size = btf.size(field.type_id)?;
    let mut offset = field.offset / 8;
    let mut bits = size.checked_mul(8)?;
    if field.bits != 0 {
        // The whole words that the bits are in.
        bits = field.bits;
        offset = offset / size * size;
        while field.offset + bits > (offset + size) * 8 {
            size *= 2;
            (size <= 8).then_some(())?;
            offset = field.offset / 8 / size * size;
        }
    }
    Some(match kind {
        BYTE_OFFSET => offset,
        BYTE_SIZE => size,
        SIGNED => btf.is_signed(field.type_id).into(),
        LEFT_SHIFT => 64u32.checked_sub(field.offset + bits - offset * 8)?,
        RIGHT_SHIFT => 64u32.checked_sub(bits)?,
        _ => return None,
    })
}

/// Puts a value where an instruction has it.
fn write(section: &mut [u8], at: usize, value: u32) -> io::Result<()> {
    let outside = || malformed("an access outside of its section");
    let instruction = section.get_mut(at..at + 8).ok_or_else(outside)?;
    match instruction[0] & 7 {
        LDX | ST | STX => {
            let value = i16::try_from(value)
                .map_err(|_| malformed("a field further from its struct than 32 KB"))?;
            instruction[2..4].copy_from_slice(&value.to_le_bytes());
        }
        LD | ALU | ALU64 => instruction[4..8].copy_from_slice(&value.to_le_bytes()),
        _ => return Err(malformed("an access by an instruction of an unknown kind")),
    }
    Ok(())
}

/// Makes an instruction one that the verifier refuses if the program can get there: the call of a
/// helper that there is not.
fn poison(section: &mut [u8], at: usize) -> io::Result<()> {
    const CALL: u8 = 0x85;
    const NO_HELPER: u32 = 195_896_080;
    let outside = || malformed("an access outside of its section");
    // A number of 64 bits takes two instructions.
    let length = if section.get(at) == Some(&0x18) {
        16
    } else {
        8
    };
    let instructions = section.get_mut(at..at + length).ok_or_else(outside)?;
    for instruction in instructions.chunks_exact_mut(8) {
        instruction.fill(0);
        instruction[0] = CALL;
        instruction[4..8].copy_from_slice(&NO_HELPER.to_le_bytes());
    }
    Ok(())
}
