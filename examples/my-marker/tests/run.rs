//! The marker in a whole run.

use std::path::Path;

use shallows_run::Scenario;

#[test]
fn the_marker_marks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenario.toml");
    let mut scenario = Scenario::read_with(&path, &[], &my_marker::registry()).unwrap();
    let marks = |scenario: &Scenario| -> u32 {
        let record = scenario.run().unwrap();
        record.flows.iter().map(|flow| flow.marks).sum()
    };
    let early = marks(&scenario);
    // A setting keeps the registry.
    scenario
        .set("ports.switch.marker.scheme.quadratic.full=400pkts")
        .unwrap();
    let late = marks(&scenario);
    assert!(
        late < early,
        "{late} marks with a longer queue, {early} before"
    );
    let (resolved, _) = scenario.config.resolved().unwrap();
    assert!(resolved.contains("quadratic"), "{resolved}");
}

#[test]
fn without_the_registry_the_name_is_unknown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenario.toml");
    let error = Scenario::load(&path).unwrap_err();
    assert_eq!(error.message(), "unknown name \"quadratic\"");
}
