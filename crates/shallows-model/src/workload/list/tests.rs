use proptest::prelude::*;

use super::super::tests::mutation::{fuzz_for_long, fuzzing, mutant};
use super::*;

const HEADER: &str = "start_s,src,dst,bytes,service\n";

fn parse_body(body: &str) -> Result<Vec<FlowSpec>, ListError> {
    parse(&format!("{HEADER}{body}"), 144)
}

#[test]
fn seconds_are_exact_to_the_picosecond() {
    let ps = |text| seconds(text).map(Time::ps);
    assert_eq!(ps("0.000045300"), Some(45_300_000));
    assert_eq!(ps("1"), Some(1_000_000_000_000));
    assert_eq!(ps("0.000000000001"), Some(1));
    assert_eq!(ps("2.287e-06"), Some(2_287_000));
    assert_eq!(ps("2.2870000000000002e-06"), Some(2_287_000));
    assert_eq!(ps("1.5E3"), Some(1_500_000_000_000_000));
    assert_eq!(ps("0.0000000000005"), Some(1));
    assert_eq!(ps("0.00000000000049"), Some(0));
    assert_eq!(ps("5e-13"), Some(1));
    assert_eq!(ps("5e-14"), Some(0));
    assert_eq!(ps(".5"), Some(500_000_000_000));
    assert_eq!(ps("1."), Some(1_000_000_000_000));
    assert_eq!(ps("0e999999999"), Some(0));
    for bad in [
        "", ".", "-1", "1s", "1.2.3", "1e", "e5", "nan", "1e30", "99999999",
    ] {
        assert_eq!(ps(bad), None, "{bad}");
    }
}

#[test]
fn lines_have_as_many_fields_as_the_header() {
    let error = parse_body("0,0,1,1460,0,7\n").unwrap_err();
    let expected = "line 2: \"0,0,1,1460,0,7\" has 6 fields, the header names 5 columns";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn columns_go_by_name() {
    let text = "id,service,bytes,dst,src,start_s\n7,3,1460,5,4,0.001\n";
    let expected = FlowSpec {
        start: Time::from_ms(1),
        src: HostId(4),
        dst: HostId(5),
        bytes: 1460,
        service: 3,
    };
    assert_eq!(parse(text, 6), Ok(vec![expected]));
}

#[test]
fn sorted_by_start_then_line() {
    let flows = parse_body("2,0,1,10,0\n1,0,1,20,0\n2,0,1,30,0\n1,0,1,40,0\n").unwrap();
    let bytes: Vec<u64> = flows.iter().map(|flow| flow.bytes).collect();
    assert_eq!(bytes, [20, 40, 10, 30]);
}

#[test]
fn blank_lines_comments_and_line_ends_do_not_matter() {
    let text = "# made by hand\r\nstart_s, src, dst, bytes, service\r\n\r\n0, 1, 2, 3, 4\r\n";
    assert_eq!(parse(text, 144).unwrap().len(), 1);
}

#[test]
fn errors_have_the_line_and_the_text() {
    let message = |body: &str| parse_body(body).unwrap_err().to_string();
    assert_eq!(
        message("0,0,1,10,0\nsoon,0,1,10,0\n"),
        "line 3: start_s is \"soon\", it must be decimal seconds from 0 to 8640000 such as 0.000125"
    );
    assert_eq!(
        message("0,0,1,0,0"),
        "line 2: bytes is \"0\", it must be a whole number of bytes from 1 to 1e15"
    );
    assert_eq!(
        message("0,0,144,10,0"),
        "line 2: dst is 144, the fabric has hosts 0 to 143"
    );
    assert_eq!(message("0,7,7,10,0"), "line 2: src and dst are both 7");
    assert_eq!(
        message("0,7,8,10"),
        "line 2: \"0,7,8,10\" has no field for the column \"service\""
    );
    assert_eq!(
        message("0,7,8,10,70000"),
        "line 2: service is \"70000\", it must be a whole number from 0 to 65535"
    );
    assert_eq!(message(""), "the list has no flows");
    assert_eq!(
        parse("start_s,src,dst,bytes,sevice\n", 2)
            .unwrap_err()
            .to_string(),
        "line 1 has no column \"service\", but \"sevice\""
    );
}

#[test]
fn reference_lists_are_read_whole() {
    let flows = parse(
        include_str!("../../../data/flows/permutation-10mb.csv"),
        144,
    )
    .unwrap();
    assert_eq!(flows.len(), 144);
    assert!(flows.iter().all(|flow| flow.bytes == 10_001_000));
    let flows = parse(include_str!("../../../data/flows/web-search-60.csv"), 144).unwrap();
    assert_eq!(flows.len(), 3000);
    assert_eq!(flows[1].start, Time::from_ps(24_966_000));
}

#[test]
fn what_would_stand_for_something_else_is_refused() {
    // The bytes of an endless flow, and the start of one that waits for a barrier.
    for line in [
        "0,0,1,18446744073709551615,0",
        "18446744.073709551615,0,1,10,0",
    ] {
        assert!(
            matches!(parse_body(line), Err(ListError::Line { .. })),
            "{line}"
        );
    }
}

const LIST: &str =
    "# a list\nstart_s,src,dst,bytes,service\n0,0,1,1460,0\n2.287e-06,16,66,8760,3\n";

#[test]
#[ignore = "takes as long as it is told to"]
fn fuzz_for_long_flow_lists() {
    fuzz_for_long("flow lists", LIST, check);
}

proptest! {
    #![proptest_config(fuzzing())]

    #[test]
    fn parser_survives_any_bytes(bytes: Vec<u8>) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn parser_survives_anything_like_a_list(
        body in "([0-9.eE+-]{0,8},){0,6}[0-9 .,eE+#\\r\\n\u{feff}a-]{0,60}",
    ) {
        check(&format!("{HEADER}{body}"))?;
    }

    #[test]
    fn parser_survives_mistakes(mutant in mutant(LIST)) {
        check(&mutant)?;
    }
}

/// A list has flows that can be simulated, or an error that says where.
fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(text, 144) {
        Ok(flows) => {
            prop_assert!(flows.is_sorted_by_key(|flow| flow.start));
            for flow in flows {
                prop_assert!(flow.src.0 < 144 && flow.dst.0 < 144 && flow.src != flow.dst);
                prop_assert!((1..=MOST_BYTES).contains(&flow.bytes));
                prop_assert!(flow.start <= LATEST_START);
            }
        }
        Err(ListError::Line { number, .. } | ListError::NoColumn { number, .. }) => {
            prop_assert!((1..=text.lines().count()).contains(&number));
        }
        Err(ListError::Interrupted(_)) => unreachable!("nobody gives up"),
        Err(ListError::Empty) => {
            prop_assert!(text.lines().filter(|l| !is_blank(l)).count() < 2);
        }
    }
    Ok(())
}
