//! The loader without a kernel: our objects, and types that are made up.

use super::btf::{ARRAY, Btf, FUNC, INT, PTR, STRUCT, UNION};
use super::elf::Elf;
use super::object::{Kernel, Object};
use super::relocate::{Record, Relocator, records};
use super::struct_ops::StructOps;

pub(super) const OBJECTS: [(&str, &[u8]); 9] = [
    ("dctcp", include_bytes!("../../objects/dctcp.bpf.o")),
    (
        "delay_dctcp",
        include_bytes!("../../objects/delay_dctcp.bpf.o"),
    ),
    ("ear", include_bytes!("../../objects/ear.bpf.o")),
    ("ecn_star", include_bytes!("../../objects/ecn_star.bpf.o")),
    ("mark", include_bytes!("../../objects/mark.bpf.o")),
    ("marker", include_bytes!("../../objects/marker.bpf.o")),
    ("model", include_bytes!("../../objects/model.bpf.o")),
    ("qjump", include_bytes!("../../objects/qjump.bpf.o")),
    ("sockets", include_bytes!("../../objects/sockets.bpf.o")),
];

const VAR: u32 = 14;
const DATASEC: u32 = 15;
/// A bit of a struct's head: the offsets of its members have widths with them.
const WITH_BITS: u32 = 1 << 31;

/// Writes BTF.
struct Types {
    types: Vec<u32>,
    strings: Vec<u8>,
    count: u32,
}

impl Types {
    /// With `u8`, `u32` and `s32`, of the numbers 1 to 3.
    fn new() -> Self {
        let mut types = Self {
            types: Vec::new(),
            strings: vec![0],
            count: 0,
        };
        types.add(INT, "u8", 1, &[8]);
        types.add(INT, "u32", 4, &[32]);
        types.add(INT, "s32", 4, &[1 << 24 | 32]);
        types
    }

    fn string(&mut self, string: &str) -> u32 {
        if string.is_empty() {
            return 0;
        }
        let offset = self.strings.len() as u32;
        self.strings.extend(string.bytes());
        self.strings.push(0);
        offset
    }

    fn add_counted(
        &mut self,
        kind: u32,
        count: u32,
        name: &str,
        size_or_type: u32,
        rest: &[u32],
    ) -> u32 {
        let name = self.string(name);
        self.types.extend([name, kind << 24 | count, size_or_type]);
        self.types.extend(rest);
        self.count += 1;
        self.count
    }

    fn add(&mut self, kind: u32, name: &str, size_or_type: u32, rest: &[u32]) -> u32 {
        self.add_counted(kind, 0, name, size_or_type, rest)
    }

    /// Members are names, types, and offsets in bits with the widths of bit fields.
    fn add_struct(
        &mut self,
        kind: u32,
        name: &str,
        size: u32,
        members: &[(&str, u32, u32, u32)],
    ) -> u32 {
        let rest: Vec<u32> = members
            .iter()
            .flat_map(|&(name, id, offset, bits)| [self.string(name), id, bits << 24 | offset])
            .collect();
        let count = members.len() as u32 | WITH_BITS;
        self.add_counted(kind, count, name, size, &rest)
    }

    fn btf(&self) -> Btf {
        let (types, strings) = (self.types.len() as u32 * 4, self.strings.len() as u32);
        let header = [0x0001_EB9F, 24, 0, types, types, strings];
        let words = header.iter().chain(&self.types);
        let mut file: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        file.extend(&self.strings);
        Btf::parse(&file).expect("it is BTF")
    }
}

/// Instructions: a load of 32 bits, a load of 8 bits, `r1 = NUMBER`, and one of 64 bits.
const LOAD: [u8; 8] = [0x61, 0x12, 0, 0, 0, 0, 0, 0];
const LOAD_BYTE: [u8; 8] = [0x71, 0x12, 0, 0, 0, 0, 0, 0];
const MOVE: [u8; 8] = [0xB7, 0x01, 0, 0, 0, 0, 0, 0];
const MOVE_64: [u8; 16] = [0x18, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Fits an instruction that accesses `access` of the struct `root`.
fn fit(
    (local, kernel): (&mut Types, &Types),
    root: u32,
    access: &str,
    kind: u32,
    instruction: &[u8],
) -> Result<Vec<u8>, String> {
    let access = local.string(access);
    let (local, kernel) = (local.btf(), kernel.btf());
    let mut code = instruction.to_vec();
    let record = Record::new(0, root, access, kind);
    Relocator::new(&local, &kernel)
        .apply(&mut code, &record)
        .map_err(|error| error.to_string())?;
    Ok(code)
}

/// The offset in a load.
fn offset(code: &[u8]) -> i16 {
    i16::from_le_bytes([code[2], code[3]])
}

/// The number in a move.
fn number(code: &[u8]) -> u32 {
    u32::from_le_bytes([code[4], code[5], code[6], code[7]])
}

/// `struct sock { u32 window; u8 state: 5; u32 values[4]; struct inner { u8 flag; } inner; }` and
/// what another kernel makes of it.
fn two_worlds() -> (Types, u32, Types) {
    let mut local = Types::new();
    let array = local.add(ARRAY, "", 0, &[2, 2, 4]);
    let inner = local.add_struct(STRUCT, "inner", 1, &[("flag", 1, 0, 0)]);
    let sock = local.add_struct(
        STRUCT,
        "sock",
        32,
        &[
            ("window", 2, 0, 0),
            ("state", 1, 32, 5),
            ("values", array, 64, 0),
            ("inner", inner, 192, 0),
            ("late", 2, 224, 0),
        ],
    );
    let mut kernel = Types::new();
    let array = kernel.add(ARRAY, "", 0, &[2, 2, 4]);
    let inner = kernel.add_struct(STRUCT, "inner", 4, &[("more", 1, 0, 0), ("flag", 1, 16, 0)]);
    // In a union in a struct without names.
    let union = kernel.add_struct(UNION, "", 4, &[("other", 1, 0, 0), ("window", 2, 0, 0)]);
    let hidden = kernel.add_struct(STRUCT, "", 8, &[("before", 2, 0, 0), ("", union, 32, 0)]);
    kernel.add_struct(
        STRUCT,
        "sock",
        64,
        &[
            ("", hidden, 64, 0),
            // Bits 3 to 7 of byte 17.
            ("state", 1, 17 * 8 + 3, 5),
            ("values", array, 160, 0),
            ("inner", inner, 320, 0),
        ],
    );
    (local, sock, kernel)
}

#[test]
fn fields_are_found_by_name_wherever_they_are() {
    let (mut local, sock, kernel) = two_worlds();
    let mut at = |access: &str| {
        let code = fit((&mut local, &kernel), sock, access, 0, &LOAD).unwrap();
        assert_eq!(code[0], LOAD[0], "{access}: its size is the same");
        offset(&code)
    };
    assert_eq!(at("0:0"), 8 + 4);
    assert_eq!(at("0:2:3"), 20 + 3 * 4);
    let code = fit((&mut local, &kernel), sock, "0:3:0", 0, &LOAD_BYTE).unwrap();
    assert_eq!(offset(&code), 40 + 2);
    // As a number, too.
    let code = fit((&mut local, &kernel), sock, "0:0", 0, &MOVE).unwrap();
    assert_eq!(number(&code), 12);
    let code = fit((&mut local, &kernel), sock, "0:0", 1, &MOVE_64).unwrap();
    assert_eq!(number(&code), 4);
}

#[test]
fn bit_fields_are_shifted_into_place() {
    let (mut local, sock, kernel) = two_worlds();
    let mut of = |kind| {
        let code = fit((&mut local, &kernel), sock, "0:1", kind, &MOVE).unwrap();
        number(&code)
    };
    // Bits 3 to 7 of byte 17: a byte there, 64 - 8 up, 64 - 5 down, and no sign.
    assert_eq!([0, 1, 3, 4, 5].map(&mut of), [17, 1, 0, 56, 59]);
}

#[test]
fn a_bit_field_across_bytes_takes_a_wider_word() {
    let mut types = Types::new();
    let sock = types.add_struct(STRUCT, "sock", 4, &[("state", 1, 6, 4)]);
    let mut of = |kind| {
        let kernel = Types {
            types: types.types.clone(),
            strings: types.strings.clone(),
            count: types.count,
        };
        let code = fit((&mut types, &kernel), sock, "0:0", kind, &MOVE).unwrap();
        number(&code)
    };
    // Bits 6 to 9: two bytes from 0, 64 - 10 up, 64 - 4 down.
    assert_eq!([0, 1, 4, 5].map(&mut of), [0, 2, 54, 60]);
}

#[test]
fn what_the_kernel_lacks_must_not_be_reached() {
    let (mut local, sock, kernel) = two_worlds();
    let exists =
        |local: &mut Types, access| number(&fit((local, &kernel), sock, access, 2, &MOVE).unwrap());
    assert_eq!(exists(&mut local, "0:4"), 0);
    assert_eq!(exists(&mut local, "0:0"), 1);
    // A call of a helper that there is not.
    let code = fit((&mut local, &kernel), sock, "0:4", 0, &LOAD).unwrap();
    assert_eq!((code[0], number(&code)), (0x85, 195_896_080));
    let code = fit((&mut local, &kernel), sock, "0:4", 0, &MOVE_64).unwrap();
    assert_eq!((code[0], code[8]), (0x85, 0x85));
}

#[test]
fn loads_take_the_size_that_the_kernel_has() {
    let mut local = Types::new();
    let members = [
        ("unsigned", 2, 0, 0),
        ("signed", 3, 32, 0),
        ("pointer", 2, 64, 0),
    ];
    let sock = local.add_struct(STRUCT, "sock", 12, &members);
    let mut kernel = Types::new();
    let signed = kernel.add(INT, "s8", 1, &[1 << 24 | 8]);
    let pointer = kernel.add(PTR, "", 1, &[]);
    kernel.add_struct(
        STRUCT,
        "sock",
        16,
        &[
            ("unsigned", 1, 24, 0),
            ("signed", signed, 0, 0),
            ("pointer", pointer, 64, 0),
        ],
    );
    let code = fit((&mut local, &kernel), sock, "0:0", 0, &LOAD).unwrap();
    assert_eq!((code[0], offset(&code)), (LOAD_BYTE[0], 3));
    let problem = fit((&mut local, &kernel), sock, "0:1", 0, &LOAD).unwrap_err();
    assert!(problem.contains("signed"), "{problem}");
    // A pointer is no number.
    let code = fit((&mut local, &kernel), sock, "0:2", 2, &MOVE).unwrap();
    assert_eq!(number(&code), 0);
}

#[test]
fn structs_of_one_name_have_to_agree() {
    let (mut local, sock, mut kernel) = two_worlds();
    // One without the field is none.
    kernel.add_struct(STRUCT, "sock", 4, &[("else", 2, 0, 0)]);
    let code = fit((&mut local, &kernel), sock, "0:0", 0, &LOAD).unwrap();
    assert_eq!(offset(&code), 12);
    kernel.add_struct(STRUCT, "sock", 4, &[("window", 2, 0, 0)]);
    let problem = fit((&mut local, &kernel), sock, "0:0", 0, &LOAD).unwrap_err();
    assert!(problem.contains("several structs sock"), "{problem}");
}

#[test]
fn a_kernel_with_our_types_needs_no_change() {
    let mut fitted = 0;
    for (name, file) in OBJECTS {
        let elf = Elf::parse(file).unwrap();
        let btf = Btf::parse(elf.bytes(".BTF").unwrap()).unwrap();
        let mut relocator = Relocator::new(&btf, &btf);
        for (section, records) in records(&btf, elf.bytes(".BTF.ext").unwrap()).unwrap() {
            let before = elf.bytes(section).unwrap();
            let mut after = before.to_vec();
            let whole = |record: &&Record| record.is_of_bits(&btf) == Some(false);
            for record in records.iter().filter(whole) {
                relocator.apply(&mut after, record).unwrap();
                fitted += 1;
            }
            assert_eq!(before, after, "{name}, {section}");
        }
    }
    println!("{fitted} instructions");
    assert!(fitted > 400);
}

#[test]
fn the_kernel_gets_no_sections_and_no_declarations() {
    let mut types = Types::new();
    let proto = types.add(13, "", 0, &[]);
    let declared = types.add_counted(FUNC, 2, "declared", proto, &[]);
    let defined = types.add_counted(FUNC, 1, "defined", proto, &[]);
    let variable = types.add(VAR, "variable", 2, &[1]);
    let section = types.add_counted(DATASEC, 1, ".maps", 0, &[variable, 0, 4]);
    let late = types.add(INT, "late", 4, &[32]);
    let btf = Btf::parse(&types.btf().for_kernel().unwrap()).unwrap();
    let kinds = [declared, defined, section, late].map(|id| btf.get(id).unwrap().kind);
    assert_eq!(kinds, [PTR, FUNC, PTR, INT]);
    assert_eq!(btf.variable("variable"), Some(2));
}

#[test]
fn a_struct_of_functions_is_arranged_as_the_kernel_has_it() {
    let elf = Elf::parse(OBJECTS[0].1).unwrap();
    let local = Btf::parse(elf.bytes(".BTF").unwrap()).unwrap();
    let mut types = Types::new();
    let pointer = types.add(PTR, "", 0, &[]);
    let name = types.add(ARRAY, "", 0, &[1, 2, 16]);
    let functions = [
        "init",
        "release",
        "ssthresh",
        "cong_control",
        "undo_cwnd",
        "cwnd_event",
    ];
    let mut members: Vec<(&str, u32, u32, u32)> = functions
        .iter()
        .zip(0..)
        .map(|(&function, i)| (function, pointer, i * 64, 0))
        .collect();
    members.extend([("flags", 2, 384, 0), ("name", name, 416, 0)]);
    let with = |pkts_acked: bool| {
        let mut types = Types {
            types: types.types.clone(),
            strings: types.strings.clone(),
            count: types.count,
        };
        let mut members = members.clone();
        if pkts_acked {
            members.push(("pkts_acked", pointer, 576, 0));
        }
        let ops = types.add_struct(STRUCT, "tcp_congestion_ops", 80, &members);
        let state = [("state", 2, 0, 0), ("data", ops, 64, 0)];
        types.add_struct(STRUCT, "bpf_struct_ops_tcp_congestion_ops", 88, &state);
        Kernel::of(types.btf())
    };
    let ops = StructOps::find(&elf, &local, &with(true)).unwrap().unwrap();
    let members = [
        ("init", 0),
        ("ssthresh", 2),
        ("cong_control", 3),
        ("pkts_acked", 8),
    ];
    for (function, member) in members {
        assert_eq!(ops.kind(function).unwrap().attach_type, member);
    }
    let value = ops.value();
    assert_eq!(value.len(), 88);
    // Flags 1 (any user may choose it) and 2 (it needs ECN), then the name.
    assert_eq!(value[56..60], [3, 0, 0, 0]);
    assert_eq!(value[60..70], *b"shl_dctcp\0");
    // An older kernel, perhaps.
    let problem = StructOps::find(&elf, &local, &with(false)).err().unwrap();
    assert!(
        problem.to_string().contains("no member pkts_acked"),
        "{problem}"
    );
}

#[test]
fn the_kernel_takes_every_object() {
    if let Err(reason) = crate::check() {
        shallows_testing::skip!("{reason}");
    }
    let kernel = Kernel::read().unwrap();
    // The marker has a variable; tc loads it, for a test.
    for (name, file) in OBJECTS.iter().filter(|(name, _)| *name != "marker") {
        let loaded = Object::load(file, &kernel);
        assert!(loaded.is_ok(), "{name}: {loaded:?}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    for (_, file) in OBJECTS {
        for length in (0..file.len()).step_by(97) {
            // What matters is that nothing panics: the section headers are at the end.
            assert!(Elf::parse(&file[..length]).is_none(), "{length}");
        }
        let elf = Elf::parse(file).unwrap();
        let btf = elf.bytes(".BTF").unwrap();
        for length in (0..btf.len()).step_by(31) {
            assert!(Btf::parse(&btf[..length]).is_none(), "{length}");
        }
        let btf = Btf::parse(btf).unwrap();
        let ext = elf.bytes(".BTF.ext").unwrap();
        for length in 0..ext.len() {
            let _ = records(&btf, &ext[..length]);
        }
    }
}
