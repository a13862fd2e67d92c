//! Objects with bytes changed: each is parsed or refused, whatever is in it.

use super::btf::Btf;
use super::elf::Elf;
use super::object::Kernel;
use super::relocate::{Relocator, records};
use super::struct_ops::StructOps;
use super::tests::OBJECTS;

/// Numbers from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

/// Changes a few bytes, words or lengths.
fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(8) {
        let at = numbers.below(bytes.len());
        // Headers and tables are at the ends of a file.
        let at = match numbers.below(3) {
            0 => at % 64,
            1 => bytes.len() - 1 - at % (bytes.len() / 4).max(1),
            _ => at,
        };
        match numbers.below(5) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][numbers.below(5)],
            2 => {
                let word = [0, 1, u32::MAX, 1 << 31, numbers.next() as u32][numbers.below(5)];
                let end = (at + 4).min(bytes.len());
                bytes[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
            }
            3 => {
                let from = numbers.below(bytes.len());
                let length = numbers.below(32).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + length, at);
            }
            _ if bytes.len() > 128 && numbers.below(4) == 0 => bytes.truncate(at.max(64)),
            _ => {}
        }
    }
}

/// Everything that is done with an object before the kernel sees it.
fn parse(file: &[u8], kernel: &Kernel) -> Option<()> {
    let elf = Elf::parse(file)?;
    for section in 0..elf.sections.len() {
        elf.relocations(section).for_each(drop);
        elf.named_symbols(section).for_each(drop);
    }
    let btf = Btf::parse(elf.bytes(".BTF")?)?;
    for id in 0..2_000 {
        let Some(found) = btf.get(id) else { break };
        let _ = (btf.name(found), btf.bare(id), btf.size(id), btf.array(id));
        let _ = btf.is_signed(id);
        btf.members(id).take(100).for_each(drop);
    }
    let _ = btf.for_kernel();
    let _ = StructOps::find(&elf, &btf, kernel);
    let mut relocator = Relocator::new(&btf, kernel.types());
    for (name, records) in records(&btf, elf.bytes(".BTF.ext")?)? {
        let mut code = elf.bytes(name).unwrap_or_default().to_vec();
        for record in &records {
            let _ = relocator.apply(&mut code, record);
        }
    }
    Some(())
}

/// Tries some mutants; how many there were.
fn try_mutants(seed: u64, count: u64) -> u64 {
    let elf = Elf::parse(OBJECTS[0].1).expect("it is an object");
    let types = Btf::parse(elf.bytes(".BTF").expect("it has types")).expect("they are types");
    let kernel = Kernel::of(types);
    let mut numbers = Numbers(seed);
    for _ in 0..count {
        let mut bytes = OBJECTS[numbers.below(OBJECTS.len())].1.to_vec();
        mutate(&mut bytes, &mut numbers);
        let _ = parse(&bytes, &kernel);
    }
    count
}

#[test]
fn records_without_length_are_refused() {
    let elf = Elf::parse(OBJECTS[0].1).expect("it is an object");
    let types = Btf::parse(elf.bytes(".BTF").expect("it has types")).expect("they are types");
    // A header of 32 bytes; then a section of two records, whose size comes first.
    for (size, is_refused) in [(0, true), (15, true), (16, false)] {
        let header = [0, 32, 0, 0, 0, 0, 0, 12 + 2 * size];
        let words = header.into_iter().chain([size, 0, 2]);
        let mut ext: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        ext.resize(ext.len() + 2 * size as usize, 0);
        assert_eq!(records(&types, &ext).is_none(), is_refused, "{size}");
    }
}

#[test]
fn no_object_panics() {
    try_mutants(1, 3_000);
}

#[test]
#[ignore = "takes as long as it is told to"]
fn fuzz_for_long_objects() {
    shallows_testing::fuzz("ELF objects", |seed| try_mutants(seed, 1_000));
}
