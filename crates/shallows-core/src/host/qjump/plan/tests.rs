use super::*;

fn network(hosts: u32, packet: &str, rate: &str, processing: &str) -> Network {
    Network {
        hosts,
        packet: packet.parse().unwrap(),
        rate: rate.parse().unwrap(),
        processing: processing.parse().unwrap(),
    }
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

fn needs(list: &[(&str, Need)]) -> Vec<Application> {
    let application = |&(name, need): &(&str, Need)| Application {
        name: name.to_owned(),
        need,
        largest: Bytes::new(200),
    };
    list.iter().map(application).collect()
}

/// §6.4: P = 9 kB, n = 144, f = {144, 100, 20, 10, 5, 3, 2, 1}.
#[test]
fn the_factors_of_figure_9() {
    let network = network(144, "9KB", "10Gbps", "0");
    let factors = [144.0, 100.0, 20.0, 10.0, 5.0, 3.0, 2.0, 1.0];
    let plan = Plan::from_factors(network, Phase::Synchronized, &factors).unwrap();
    // 144 * 72,000 bits / 10 Gbps.
    assert_eq!(plan.epoch, time("1036.8us"));
    let bytes: Vec<_> = plan.levels.iter().map(|level| level.bytes).collect();
    let kb = |kb| Some(Bytes::from_kb(kb));
    assert_eq!(
        bytes,
        [
            None,
            kb(900),
            kb(180),
            kb(90),
            kb(45),
            kb(27),
            kb(18),
            kb(9)
        ]
    );
    // 9 kB in 1.0368 ms: R / n.
    assert_eq!(plan.levels[7].rate, Rate::from_bps(69_444_444));
    assert_eq!(plan.levels[7].latency, Latency::Guaranteed(plan.epoch));
    assert_eq!(plan.levels[1].rate, Rate::from_bps(6_944_444_444));
    // Seven levels fill an epoch each.
    assert_eq!(plan.levels[1].latency, Latency::Expected(time("7257.6us")));
    assert_eq!(plan.levels[0].latency, Latency::Unbounded);
    assert_eq!(plan.levels[0].rate, Rate::from_gbps(10));
}

/// §6.2: ptpd at f = 1, memcached at 5 Gbps, Hadoop at f = n, 12 hosts.
#[test]
fn the_mix_of_figure_5() {
    let network = network(12, "256B", "10Gbps", "0");
    let mix = needs(&[
        ("hadoop", Need::Bulk),
        ("ptpd", Need::Guaranteed),
        ("memcached", Need::Rate(Rate::from_gbps(5))),
    ]);
    // With eq. 1 the factor is the paper's 6: 12 * 5 / 10.
    let plan = Plan::from_applications(network, Phase::Synchronized, &mix).unwrap();
    let factors: Vec<_> = plan.levels.iter().map(|level| level.factor).collect();
    assert_eq!(factors, [None, Some(6.0), Some(1.0)]);
    let names = plan.levels.iter().map(|level| level.names().concat());
    assert_eq!(names.collect::<Vec<_>>(), ["hadoop", "memcached", "ptpd"]);
    // With eq. 2 the epoch is twice as long, and so are the bytes for the same rate.
    let plan = Plan::from_applications(network, Phase::Mesochronous, &mix).unwrap();
    // 2 * 12 * 2048 bits / 10 Gbps; 5 Gbps * 4.9152 us / 8.
    assert_eq!(plan.epoch, time("4.9152us"));
    assert_eq!(plan.levels[1].bytes, Some(Bytes::new(3072)));
    assert_eq!(plan.levels[1].factor, Some(12.0));
    assert_eq!(plan.levels[1].rate, Rate::from_gbps(5));
    assert_eq!(plan.levels[1].latency, Latency::Expected(time("9.8304us")));
}

#[test]
fn a_rate_is_reached_and_no_need_falls_below_the_guarantee() {
    let network = network(1000, "256B", "10Gbps", "4us");
    let mix = needs(&[
        ("a", Need::Rate(Rate::from_mbps(100))),
        ("b", Need::Rate(Rate::from_kbps(10))),
    ]);
    let plan = Plan::from_applications(network, Phase::Mesochronous, &mix).unwrap();
    // 100 Mbps in 413.6 us are exactly 5,170 B.
    assert_eq!(plan.levels[0].bytes, Some(Bytes::new(5170)));
    assert!(plan.levels[0].rate >= Rate::from_mbps(100));
    assert_eq!(plan.levels[1].bytes, Some(Bytes::new(256)));
    assert_eq!(plan.levels[1].latency, Latency::Guaranteed(plan.epoch));
}

#[test]
fn more_needs_than_levels_share_those_that_are_nearest() {
    let network = network(12, "256B", "10Gbps", "0");
    // At most half the link, with eq. 2.
    let rates =
        [10, 20, 40, 80, 85, 160, 320, 490].map(|mbps| Need::Rate(Rate::from_mbps(10 * mbps)));
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut mix: Vec<_> = names.into_iter().zip(rates).collect();
    mix.push(("bulk", Need::Bulk));
    // 256 B an epoch are 416 Mbps, so a, b and c need no level below the guaranteed one.
    let plan = Plan::from_applications(network, Phase::Mesochronous, &needs(&mix)).unwrap();
    assert_eq!(plan.levels.len(), 7);
    assert_eq!(plan.levels[6].names(), ["c", "b", "a"]);

    // With 120 hosts they are 41.6 Mbps, and there is one level too many.
    let network = Network {
        hosts: 120,
        ..network
    };
    let plan = Plan::from_applications(network, Phase::Mesochronous, &needs(&mix)).unwrap();
    let names = plan.levels.iter().map(|level| level.names().concat());
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["bulk", "h", "g", "ed", "f", "c", "b", "a"]);
    assert!(plan.levels[3].rate >= Rate::from_mbps(1650));
}

#[test]
fn a_distribution_is_cut_where_its_flows_pass_in_one_epoch() {
    // 1 to 100 kB evenly; P = 10 kB, n = 8: 10 flows within P, 70 between, 20 beyond n P.
    let sizes: Vec<f64> = (1..=100).map(|kb| f64::from(kb) * 1000.0).collect();
    let network = network(8, "10KB", "10Gbps", "0");
    let plan = Plan::from_flow_sizes(network, Phase::Mesochronous, &sizes, 4).unwrap();
    let bytes: Vec<_> = plan.levels.iter().map(|level| level.bytes).collect();
    let kb = |kb| Some(Bytes::from_kb(kb));
    assert_eq!(bytes, [None, kb(80), kb(45), kb(10)]);
    let shares = plan.levels.iter().map(|level| level.flows.unwrap());
    let flows: Vec<_> = shares.map(|share| (share.flows * 100.0).round()).collect();
    assert_eq!(flows, [20.0, 35.0, 35.0, 10.0]);
    // 1 + 2 + ... + 10 of 1 + 2 + ... + 100.
    let top = plan.levels[3].flows.unwrap();
    assert_eq!(top.bytes, 55.0 / 5050.0);
    // 0.6 of 10 Gbps are 6; flows of up to 80 kB are 2205 / 5050 of the bytes: 2.6 Gbps, and
    // 80 kB in 128 us are 5 Gbps.
    assert_eq!(plan.overloaded(0.6), []);
    // 55 / 5050 of 60 Gbps are 653 Mbps; 10 kB in 128 us are 625 Mbps.
    let overloaded = plan.overloaded(6.0);
    let &(level, needed) = overloaded.last().unwrap();
    assert_eq!((level, needed), (3, Rate::from_bps(653_465_346)));
}

#[test]
fn an_epoch_has_room_for_so_many_hosts() {
    let network = network(1000, "256B", "10Gbps", "4us");
    // (500 - 4) us * 10 Gbps / 2 / 2048 bits = 1210.9.
    let bound = time("500us");
    assert_eq!(network.most_hosts(Phase::Mesochronous, bound), 1210);
    assert_eq!(
        network.largest_packet(Phase::Mesochronous, bound),
        Bytes::new(310)
    );
    assert_eq!(network.most_hosts(Phase::Mesochronous, time("1us")), 0);
    // §5: "between 1,000 and 4,000 hosts ... 100-500 us using small messages of 64-256B".
    let small = Network {
        packet: Bytes::new(64),
        ..network
    };
    assert!(small.most_hosts(Phase::Mesochronous, bound) >= 4000);
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let network = network(12, "256B", "10Gbps", "0");
    let factors = |factors: &[f64]| Plan::from_factors(network, Phase::Mesochronous, factors);
    assert_eq!(factors(&[]).unwrap_err(), PlanError::Nothing);
    assert!(matches!(factors(&[13.0]), Err(PlanError::Factor { .. })));
    assert!(matches!(factors(&[0.5]), Err(PlanError::Factor { .. })));
    assert!(matches!(
        factors(&[f64::NAN]),
        Err(PlanError::Factor { .. })
    ));
    assert!(matches!(factors(&[1.0, 6.0]), Err(PlanError::Order { .. })));
    let nine = [12.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 1.0];
    assert_eq!(factors(&nine).unwrap_err(), PlanError::Levels(9));
    let fast = needs(&[("fast", Need::Rate(Rate::from_gbps(11)))]);
    let refused = Plan::from_applications(network, Phase::Mesochronous, &fast);
    assert!(matches!(refused, Err(PlanError::TooFast { .. })));
    let refused = Plan::from_flow_sizes(network, Phase::Mesochronous, &[1.0], 1);
    assert_eq!(refused.unwrap_err(), PlanError::Partition(1));
}

/// §6.1 with ε = 12 us: 5 Gbps are 41 times P in an epoch, for 12 hosts.
#[test]
fn no_factor_is_more_than_the_number_of_hosts() {
    let network = network(12, "256B", "10Gbps", "12us");
    let mix = needs(&[("memcached", Need::Rate(Rate::from_gbps(5)))]);
    let refused = Plan::from_applications(network, Phase::Mesochronous, &mix);
    let Err(PlanError::TooMuch {
        factor,
        least_packet,
        ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(factor.round(), 41.0);
    assert_eq!(least_packet, None, "f = n has less than half the link");
    // 2 Gbps: n P = 2 Gbps x (2 n P / R + 12 us), so P is 3,000 B / (12 x 0.6).
    let mix = needs(&[("memcached", Need::Rate(Rate::from_gbps(2)))]);
    let refused = Plan::from_applications(network, Phase::Mesochronous, &mix).unwrap_err();
    assert!(refused.to_string().contains("a P of 417B"), "{refused}");
    let enough = Network {
        packet: Bytes::new(417),
        ..network
    };
    let plan = Plan::from_applications(enough, Phase::Mesochronous, &mix).unwrap();
    assert!(plan.levels[0].factor.unwrap() <= 12.0);
    assert!(plan.levels[0].rate >= Rate::from_gbps(2));
}

#[test]
fn a_rate_has_room_for_the_largest_packet_of_its_application() {
    let network = network(12, "280B", "10Gbps", "4us");
    let mut mix = needs(&[
        ("ptpd", Need::Guaranteed),
        ("memcached", Need::Rate(Rate::from_gbps(1))),
    ]);
    for application in &mut mix {
        application.largest = Bytes::new(1538);
    }
    let plan = Plan::from_applications(network, Phase::Mesochronous, &mix).unwrap();
    // 1 Gbps in 9.376 us are 1,172 B.
    assert_eq!(plan.levels[0].bytes, Some(Bytes::new(1538)));
    // The guaranteed level stays P, and says who breaks.
    let caveats = plan.caveats(&Surroundings::default());
    let [caveat @ Caveat::LargePackets { level: 1, .. }] = &caveats[..] else {
        panic!("{caveats:?}");
    };
    assert!(caveat.to_string().starts_with("ptpd breaks"), "{caveat}");
}
