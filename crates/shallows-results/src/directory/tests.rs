use super::*;

fn run(target: &Path, files: &[(&str, &str)]) -> Result<(), ResultsError> {
    let output = ResultDirectory::begin(target)?;
    for (name, content) in files {
        let path = output.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in the directory")).unwrap();
        fs::write(path, content).unwrap();
    }
    output.publish()
}

fn names(target: &Path) -> Vec<String> {
    let found = files(target).unwrap();
    let name = |path: &PathBuf| path.strip_prefix(target).unwrap().display().to_string();
    found.iter().map(name).collect()
}

fn message(error: &ResultsError) -> String {
    let source = error.source().map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

#[test]
fn a_run_replaces_the_files_of_the_one_before_and_no_others() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("a/b");
    let first = [
        ("summary.json", "1"),
        ("commands/0.out", "x"),
        ("xco.svg", "old"),
    ];
    run(&target, &first).unwrap();
    assert_eq!(
        names(&target),
        ["commands/0.out", LIST, "summary.json", "xco.svg"]
    );
    fs::write(target.join("notes.txt"), "mine").unwrap();
    fs::write(target.join("commands/mine.c"), "mine").unwrap();
    run(&target, &[("summary.json", "2"), ("flows.csv", "f")]).unwrap();
    assert_eq!(
        names(&target),
        [
            "commands/mine.c",
            "flows.csv",
            "notes.txt",
            LIST,
            "summary.json"
        ]
    );
    assert_eq!(
        fs::read_to_string(target.join("summary.json")).unwrap(),
        "2"
    );
    let list = fs::read_to_string(target.join(LIST)).unwrap();
    // The hash of "f".
    let line = "252f10c83610ebca1a059c0bae8255eba2f95be4d1d7bcfa89d7248a82d9f111  flows.csv";
    assert_eq!(list.lines().nth(1), Some(line));
}

#[test]
fn what_is_not_of_a_run_is_refused_and_stays() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path();
    fs::create_dir(target.join("commands")).unwrap();
    fs::write(target.join("commands/tool.c"), "mine").unwrap();
    fs::write(target.join("result.json"), "mine").unwrap();
    let error = message(&run(target, &[("summary.json", "1")]).unwrap_err());
    assert!(error.contains("it holds commands"), "{error}");
    assert_eq!(names(target), ["commands/tool.c", "result.json"]);
    // Another program's list makes it no better.
    fs::write(target.join(LIST), "00  result.json\n").unwrap();
    let error = message(&run(target, &[("summary.json", "1")]).unwrap_err());
    assert!(error.contains("is not the list of a run"), "{error}");
    fs::write(target.join(LIST), format!("{HEADER}\n00  ../elsewhere\n")).unwrap();
    let error = message(&run(target, &[("summary.json", "1")]).unwrap_err());
    assert!(error.contains("is not the list of a run"), "{error}");
}

#[test]
fn changed_files_and_name_clashes_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("o");
    run(&target, &[("summary.json", "1")]).unwrap();
    fs::write(target.join("flows.csv"), "mine").unwrap();
    let error = message(&run(&target, &[("flows.csv", "theirs")]).unwrap_err());
    assert!(error.contains("is not of a run"), "{error}");
    assert!(error.contains("the results are in"), "{error}");
    assert_eq!(
        fs::read_to_string(target.join("flows.csv")).unwrap(),
        "mine"
    );
    let kept = target.join(UNFINISHED).join("flows.csv");
    assert_eq!(fs::read_to_string(kept).unwrap(), "theirs");
    fs::remove_file(target.join("flows.csv")).unwrap();
    fs::write(target.join("summary.json"), "edited").unwrap();
    let error = message(&run(&target, &[("summary.json", "2")]).unwrap_err());
    assert!(error.contains("has changed since"), "{error}");
    assert_eq!(
        fs::read_to_string(target.join("summary.json")).unwrap(),
        "edited"
    );
}

#[test]
fn inputs_are_not_replaced_by_something_else() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("o");
    run(&target, &[("flows.csv", "1"), ("inputs/0.csv", "in")]).unwrap();
    let output = ResultDirectory::begin(&target).unwrap();
    fs::create_dir(output.path().join("inputs")).unwrap();
    fs::write(output.path().join("inputs/0.csv"), "in").unwrap();
    output.refuse_inputs([target.join("inputs/0.csv")]).unwrap();
    output.refuse_inputs([place.path().join("absent")]).unwrap();
    let error = output
        .refuse_inputs([target.join("flows.csv")])
        .unwrap_err();
    assert!(message(&error).contains("the run reads"), "{error}");
    drop(output);
    assert_eq!(names(&target), ["flows.csv", "inputs/0.csv", LIST]);
}

#[test]
fn a_run_that_comes_to_nothing_leaves_everything_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("o");
    drop(ResultDirectory::begin(&target).unwrap());
    assert!(!target.exists());
    fs::create_dir(&target).unwrap();
    drop(ResultDirectory::begin(&target).unwrap());
    assert!(target.exists());
}

#[cfg(unix)]
#[test]
fn one_run_at_a_time_and_no_links() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("o");
    let first = ResultDirectory::begin(&target).unwrap();
    let error = message(&ResultDirectory::begin(&target).unwrap_err());
    assert!(error.contains("another run is writing to it"), "{error}");
    fs::write(first.path().join("summary.json"), "1").unwrap();
    first.publish().unwrap();
    // What a killed run has left is gone after the next one.
    fs::create_dir(target.join(UNFINISHED)).unwrap();
    fs::write(target.join(UNFINISHED).join("half"), "").unwrap();
    run(&target, &[("summary.json", "2")]).unwrap();
    assert_eq!(names(&target), [LIST, "summary.json"]);

    let link = place.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    for path in [
        link.clone(),
        place.path().join("link/"),
        place.path().join("link/."),
    ] {
        let error = message(&ResultDirectory::begin(&path).unwrap_err());
        assert!(error.contains("is a symbolic link"), "{error}");
    }
}
