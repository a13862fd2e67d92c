use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn start_times_are_read_exactly(ps in 0..=LATEST_START.ps()) {
        let text = format!(
            "start_s,src,dst,bytes,service\n{}.{:012},0,1,1,0",
            ps / 1_000_000_000_000,
            ps % 1_000_000_000_000,
        );
        prop_assert_eq!(list::parse(&text, 2).unwrap()[0].start, Time::from_ps(ps));
    }

    #[test]
    fn host_sets_in_any_form_never_panic(text in "[0-9a-z, -]{0,20}") {
        let _ = HostSet::new(text).resolve(&star(5));
    }

    #[test]
    fn scenario_parser_survives_anything(text in "[a-z0-9=\\[\\]{}'., \n-]{0,80}") {
        if let Ok(config) = toml::from_str::<WorkloadConfig>(&text) {
            let _ = config.generate(&star(3), 0);
        }
    }

    #[test]
    fn any_load_and_locality_generates_valid_flows(
        load in 0.01..2.0_f64, rack in 0.0..1.0_f64, all in 0.01..1.0_f64, seed: u64,
        pair: bool, flows in 1_u64..200,
    ) {
        let fabric = ear();
        let process = if pair { "pair" } else { "source" };
        let config = read(&format!(
            "[poisson]\nload = {load:?}\nflows = {flows}\nsize = {{ cdf = 'google-rpc' }}
             process = '{process}'\nlocality = {{ rack = {rack:?}, all = {all:?} }}
             services = {{ balanced = 3 }}"
        ));
        let workload = config.generate(&fabric, seed).unwrap();
        prop_assert_eq!(workload.flows.len() as u64, flows);
        prop_assert!(is_sorted(&workload));
        for flow in &workload.flows {
            prop_assert!(flow.src != flow.dst && flow.dst.0 < 324 && flow.service < 3);
            prop_assert!(flow.bytes > 0);
        }
    }
}
