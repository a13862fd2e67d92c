use shallows_core::units::Bytes;

use super::*;

#[test]
fn host_sets() {
    let fabric = leaf_spine();
    let resolve = |text: &str| HostSet::new(text).resolve(&fabric);
    assert_eq!(resolve("all").unwrap().len(), 144);
    assert_eq!(resolve("3").unwrap(), [HostId(3)]);
    assert_eq!(resolve("5-7, 2,h3,3").unwrap(), [2, 3, 5, 6, 7].map(HostId));
    assert_eq!(
        resolve("leaf1").unwrap(),
        (12..24).map(HostId).collect::<Vec<_>>()
    );
    assert_eq!(
        resolve("spine1").unwrap_err().to_string(),
        "\"spine1\" has no hosts"
    );
    assert_eq!(
        resolve("7-5").unwrap_err().to_string(),
        "\"7-5\" has no hosts"
    );
    assert_eq!(
        resolve("leef1").unwrap_err().to_string(),
        "there is no node \"leef1\", did you mean \"leaf1\"?"
    );
    assert!(resolve("").is_err());
}

#[test]
fn sizes_in_three_forms() {
    let size = |text: &str| {
        #[derive(serde::Deserialize)]
        struct Table {
            size: SizeConfig,
        }
        toml::from_str::<Table>(text).map(|table| table.size)
    };
    let fixed = SizeConfig::Fixed(Bytes::from_kb(1000));
    assert_eq!(size("size = '1MB'").unwrap(), fixed);
    assert_eq!(
        size("size = { cdf = 'cache' }").unwrap(),
        SizeConfig::named("cache")
    );
    let by_service = size("size = { by-service = ['1MB', { cdf = 'cache' }] }").unwrap();
    let list = vec![fixed, SizeConfig::named("cache")];
    assert_eq!(by_service, SizeConfig::Drawn(DrawnSize::ByService(list)));
    for (text, part) in [
        ("size = 7", "a size such as \"1MB\""),
        ("size = '7 apples'", "unknown unit \"apples\""),
        ("size = { cdf = { nam = 'cache' } }", "nam"),
        ("size = { cfd = 'cache' }", "cfd"),
    ] {
        let message = size(text).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn distributions_need_one_source() {
    let message = |cdf: &str| {
        let text = format!("[permutation]\nsize = {{ cdf = {cdf} }}");
        refusal(&text, &star(2))
    };
    assert_eq!(
        message("{}"),
        "give a distribution either by name or by file"
    );
    assert_eq!(
        message("{ name = 'cache', packet = '0B' }"),
        "packet must not be zero"
    );
    assert!(message("{ file = '/nonexistent.cdf' }").starts_with("/nonexistent.cdf: "));
}

#[test]
fn files_are_found_beside_the_scenario() {
    let mut config = read("list = 'permutation-1mb.csv'");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    config.rebase(&data.join("flows"));
    let workload = config.generate(&leaf_spine(), 0).unwrap();
    assert_eq!(workload.flows.len(), 144);
    assert!(is_sorted(&workload));

    let mut config = read("[permutation]\nsize = { cdf = { file = 'vl2.csv' } }");
    config.rebase(&data.join("cdf"));
    assert!(config.generate(&star(3), 0).is_ok());
    assert!(refusal("list = 'nowhere.csv'", &star(3)).starts_with("nowhere.csv: "));
}

#[test]
fn a_unit_that_contradicts_the_distribution_is_refused() {
    let poisson = |unit: &str| {
        let size = format!("{{ cdf = {{ name = 'web-search', unit = '{unit}' }} }}");
        format!("[poisson]\nload = 0.5\nflows = 1\nsize = {size}")
    };
    let refused = refusal(&poisson("bytes"), &star(3));
    assert!(refused.contains("are packets; leave out unit"), "{refused}");
    assert!(read(&poisson("packets")).generate(&star(3), 0).is_ok());
}

#[test]
fn configurations_survive_writing_and_reading() {
    for text in [
        "list = 'flows.csv'",
        "flows = [{ src = 1, dst = 'h2', size = '1MB', start = '1us' }]",
        "long-lived = [{ src = 0, dst = 2, start = '10ms', stop = '20ms', service = 1 }]",
        "[poisson]\nload = 0.6\nflows = 3\nsize = { cdf = 'cache' }\nload-of = '10Gbps'",
        "[poisson]\nload = 0.6\nduration = '1s'\nsize = '1KB'\nlocality = { rack = 0.5, all = 1 }",
        "[permutation]\nsize.by-service = [{ cdf = { file = 'x', unit = 'packets' } }, '1KB']",
        "[all-to-all]\nsize = '1KB'\nservices = { weighted = [10, 20] }",
        "[udp]\nsrc = '0-2'\ndst = 3\nstream = { send = { constant = { rate = '1Gbps' } } }",
        "[incast]\nreceiver = 3\nblock = '1MB'\nrounds = 10",
    ] {
        let config = read(text);
        let written = toml::to_string(&config).unwrap();
        assert_eq!(read(&written), config, "{written}");
    }
}

#[test]
fn misspelled_keys_are_refused() {
    for text in [
        "[poisson]\nload = 0.6\nflow = 3\nsize = '1KB'",
        "[incast]\nreceiver = 3\nblok = '1MB'",
        "[poison]\nload = 0.6",
    ] {
        assert!(toml::from_str::<WorkloadConfig>(text).is_err(), "{text}");
    }
}
