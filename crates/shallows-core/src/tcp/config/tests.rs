use super::*;

fn read(text: &str) -> TcpConfig {
    toml::from_str(text).expect("the text is a transport")
}

fn problem(text: &str) -> String {
    read(text).validate().unwrap_err().to_string()
}

#[test]
fn defaults_are_valid_and_survive_a_round_trip() {
    let config = read("");
    assert_eq!(config, TcpConfig::default());
    config.validate().unwrap();
    assert_eq!(read(&toml::to_string(&config).unwrap()), config);
}

#[test]
fn each_controller_goes_by_its_name() {
    for (name, echo) in [
        ("reno", EcnEcho::Off),
        ("cubic", EcnEcho::Off),
        ("dctcp", EcnEcho::Precise),
        ("ecn-star", EcnEcho::Classic),
        ("delay-dctcp", EcnEcho::Off),
        ("ear", EcnEcho::Precise),
        ("dx", EcnEcho::Off),
        ("pfabric", EcnEcho::Off),
        ("dcqcn", EcnEcho::Off),
        ("timely", EcnEcho::Off),
    ] {
        let config = read(&format!("controller = \"{name}\""));
        config.validate().unwrap();
        assert_eq!(config.echo(), echo, "{name}");
        assert_eq!(config, read(&format!("controller = {{ {name} = {{}} }}")));
        assert_eq!(read(&toml::to_string(&config).unwrap()), config);
    }
    let error = problem("controller = \"dctpc\"");
    assert!(
        error.starts_with("unknown congestion controller `dctpc`, expected one of `reno`"),
        "{error}"
    );
}

#[test]
fn what_cannot_work_is_refused() {
    assert_eq!(problem("segment = 0"), "segment must be at least 1");
    assert_eq!(
        problem("receive-window = 3000000"),
        "a receive-window of 3000000 segments of 1460 bytes is 4380000000, more than 4 GB"
    );
    assert_eq!(
        problem("header = 4294967295"),
        "a segment of 1460 bytes and a header of 4294967295 are more than 65535 together"
    );
    assert_eq!(
        problem("rto = { maximum = \"18446744s\" }"),
        "rto.maximum is 18446744s, it must be at most 3600s"
    );
    assert_eq!(
        problem("receive-window = 4"),
        "initial-window is 10 segments, more than the receive-window of 4"
    );
    assert_eq!(
        problem("receive-window = 12\nleast-window = 13"),
        "least-window is 13 segments, more than the receive-window of 12"
    );
    assert_eq!(
        problem("rto = { maximum = \"5ms\" }"),
        "rto.initial is 10ms, beyond rto.maximum = 5ms"
    );
    assert_eq!(
        problem("rto = { minimum = \"0s\", granularity = \"0s\" }"),
        "rto.initial and rto.minimum must be more than 0s"
    );
    assert_eq!(
        problem("delayed-ack = { every = 2, timeout = \"0s\" }"),
        "delayed-ack.timeout must be more than 0s"
    );
    assert_eq!(
        problem("controller = { dctcp = { g = 1.5 } }"),
        "g is 1.5, not in (0, 1]"
    );
    for controller in ["cubic", "dx"] {
        assert_eq!(
            problem(&format!(
                "controller = \"{controller}\"\ngrowth = \"whole-segments\""
            )),
            "growth = \"whole-segments\" has no effect on a controller that grows by a law of its own"
        );
    }
    assert_eq!(
        problem("ecn = \"classic\""),
        "dctcp needs ecn = \"precise\""
    );
    assert_eq!(
        problem("controller = \"ecn-star\"\necn = \"off\""),
        "ecn-star needs ecn = \"classic\" or \"precise\""
    );
}
