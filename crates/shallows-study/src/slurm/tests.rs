use super::*;

#[test]
fn tasks_get_about_equal_work() {
    let task = |weight: u64| Task {
        key: weight.to_string(),
        scenario: String::new(),
        inputs: None,
        keep: Keep::All,
        weight,
    };
    let weights = |shares: Vec<Vec<Task>>| -> Vec<Vec<u64>> {
        let of = |share: Vec<Task>| share.iter().map(|task| task.weight).collect();
        shares.into_iter().map(of).collect()
    };
    // 7 | 5 4, then 3 joins the 7 and 2 the 9: 10 and 11.
    let shares = weights(share([2, 7, 4, 3, 5].map(task).into(), 2));
    assert_eq!(shares, [vec![7, 3], vec![5, 4, 2]]);
    let few = weights(share([1, 1].map(task).into(), 10));
    assert_eq!(few, [vec![1], vec![1]]);
}

#[test]
fn paths_are_quoted_for_the_shell() {
    assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
}
