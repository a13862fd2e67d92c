//! Packets by class and reason, printed and as JSON.

use shallows_core::port::{DropReason, MarkReason};
use shallows_results::packet_table::PacketTable;
use shallows_results::size_class::SizeClass;

fn table() -> PacketTable {
    let mut table = PacketTable::default();
    let small = table.of_mut(Some(SizeClass::Small));
    small.packets = 12_345;
    small.mark(MarkReason::Queue);
    small.drop(DropReason::PortFull);
    let large = table.of_mut(Some(SizeClass::Large));
    large.packets = 1_000_000;
    large.marks[MarkReason::Queue as usize] = 4_000;
    large.marks[MarkReason::Sojourn as usize] = 5;
    table.of_mut(None).packets = 7;
    table
}

#[test]
fn the_table_to_the_character() {
    let text = table().to_string();
    assert_eq!(
        text,
        "                   --------------- marks ----------------  - drops -
class     packets  queue above threshold  waited too long  port full
all     1,012,352                  4,001                5          1
small      12,345                      1                0          1
medium          0                      0                0          0
large   1,000,000                  4,000                5          0
other           7                      0                0          0
",
        "\n{text}"
    );
    let nothing = PacketTable::default().to_string();
    assert_eq!(nothing.lines().next(), Some("class   packets"));
}

#[test]
fn json_names_the_reasons() {
    let json = serde_json::to_value(table()).unwrap();
    assert_eq!(json["large"]["packets"], 1_000_000);
    assert_eq!(json["large"]["marks"]["queue above threshold"], 4_000);
    assert_eq!(json["small"]["drops"]["port full"], 1);
    assert_eq!(json["small"]["drops"]["evicted"], 0);
}

#[test]
fn parts_of_a_run_add_up_and_a_summary_takes_them() {
    let mut sum = table();
    sum += table();
    assert_eq!(sum.total().packets, 2 * table().total().packets);
    let marks = sum.marks();
    assert_eq!(marks[0].reason, "queue above threshold");
    assert_eq!((marks[0].counts.small, marks[0].counts.large), (2, 8_000));
    assert_eq!(sum.drops()[0].counts.total(), 2);
}
