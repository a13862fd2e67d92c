//! Commands for Linux: `tc` itself must know their words.
//!
//! A qdisc that this kernel does not have is the kernel's answer (exit code 2); a word that `tc`
//! does not know is ours.

use std::process::{Command, Output};

use shallows_core::port::{
    BufferConfig, ClassifierConfig, PortConfig, SchedulerConfig, SchemeConfig,
};
use shallows_core::tcp::TcpConfig;
use shallows_core::units::Rate;
use shallows_operate::linux::{qdiscs, transport};
use shallows_operate::sonic::Fidelity;
use shallows_testing::{missing_program, skip, skipped};

fn port(text: &str) -> PortConfig {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn words(port: &PortConfig) -> Vec<String> {
    let commands = qdiscs(port, Rate::from_gbps(25), "eth0").expect("it has commands");
    commands.into_iter().filter_map(|of| of.words).collect()
}

#[test]
fn dwrr_under_a_strict_queue_with_steps_is_ets_with_red() {
    let port = port(
        r#"
        queues = 3
        classifier = { dscp-map = { map = [2, 1], other = 2 } }
        buffer = { per-queue = { limit = "1MB" } }
        scheduler = { strict-over = { strict = 1, rest = "dwrr", quantum = ["1500B", "4500B", "3000B"] } }
        marker = { not-ect = "drop", scheme = { per-queue = { threshold = ["1TB", "62.5KB", "30KB"] } } }
        "#,
    );
    assert_eq!(
        words(&port),
        [
            "tc qdisc replace dev eth0 root handle 1: ets bands 3 strict 1 quanta 4500 3000 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2",
            "tc qdisc replace dev eth0 parent 1:1 handle 10: bfifo limit 1000000",
            "tc qdisc replace dev eth0 parent 1:2 handle 11: red limit 1000000 min 62500 max 62501 avpkt 1489 burst 42 probability 1 bandwidth 25000000000bit ecn",
            "tc qdisc replace dev eth0 parent 1:3 handle 12: red limit 1000000 min 30000 max 30001 avpkt 1500 burst 20 probability 1 bandwidth 25000000000bit ecn",
            "tc filter add dev eth0 parent 1: protocol ip pref 1 flower ip_tos 0x04/0xfc classid 1:2",
            "tc filter add dev eth0 parent 1: protocol ipv6 pref 2 flower ip_tos 0x04/0xfc classid 1:2",
        ]
    );
}

#[test]
fn tcn_is_exact_and_a_step_is_not() {
    let fidelity = |scheme: &str| {
        let port = port(&format!(
            "buffer = {{ shared = {{ size = \"1MB\" }} }}\nscheduler = \"fifo\"\nmarker = {{ scheme = {scheme} }}"
        ));
        let commands = qdiscs(&port, Rate::from_gbps(25), "eth0").expect("it has commands");
        (
            commands[0].fidelity,
            commands[0].words.clone().unwrap_or_default(),
        )
    };
    let (tcn, text) = fidelity("{ tcn = { sojourn = \"80us\" } }");
    assert_eq!(tcn, Fidelity::Exact);
    assert!(text.contains("fq_codel flows 1") && text.contains("ce_threshold 80us"));
    let (step, text) = fidelity("{ per-queue = { threshold = \"30KB\" } }");
    assert_eq!(step, Fidelity::Nearest);
    assert!(text.ends_with("ecn nodrop"), "not-ECT packets pass: {text}");
}

#[test]
fn transports_are_sysctl_and_route() {
    let words = |text: &str| -> Vec<String> {
        let tcp: TcpConfig = toml::from_str(text).expect("a transport");
        let commands = transport(&tcp, "eth0", "10.0.0.0/8");
        commands.into_iter().filter_map(|of| of.words).collect()
    };
    assert_eq!(
        words("initial-window = 16\nrto = { initial = \"5ms\", minimum = \"5ms\" }"),
        [
            "sysctl -w net.ipv4.tcp_congestion_control=dctcp",
            "sysctl -w net.ipv4.tcp_ecn=1",
            "sysctl -w net.ipv4.tcp_slow_start_after_idle=1",
            "ip route replace 10.0.0.0/8 dev eth0 congctl dctcp features ecn initcwnd 16 rto_min 5ms",
        ]
    );
    let ear = words("controller = { ear = { t = \"50us\" } }");
    assert_eq!(ear[0], "shallows cc load ear");
    assert!(ear[4].contains("congctl shl_ear features ecn"), "{ear:?}");
    assert!(words("controller = \"cubic\"")[1].ends_with("tcp_ecn=0"));
}

#[test]
fn names_and_numbers_that_linux_cannot_have_are_refused() {
    let mut wide = PortConfig::fifo(BufferConfig::Unlimited);
    wide.queues = 17;
    wide.scheduler = SchedulerConfig::Strict;
    let rate = Rate::from_gbps(1);
    let error = qdiscs(&wide, rate, "eth0").unwrap_err();
    assert!(error.to_string().contains("17 queues"));
    wide.queues = 2;
    for device in ["", "eth0; reboot", "a-name-of-more-than-15"] {
        assert!(qdiscs(&wide, rate, device).is_err(), "{device}");
    }
}

/// Runs a script in a network namespace of its own that has the device `eth0`.
fn in_namespace(script: &str) -> Option<Output> {
    let script = format!(
        "ip link add eth0 type veth peer name eth1 && ip addr add 10.1.0.1/16 dev eth0 && ip link set eth0 up || exit 77\n{script}"
    );
    let output = Command::new("unshare")
        .args(["-n", "sh", "-c", &script])
        .output();
    match output {
        Ok(output) if output.status.code() != Some(77) => Some(output),
        Ok(output) => {
            skipped(&format!(
                "no network namespace: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
            None
        }
        Err(error) => {
            skipped(&format!("it needs the program unshare: {error}"));
            None
        }
    }
}

/// Returns whether `tc` and `ip` know the words, in one namespace. The kernel may not know the qdisc.
fn accepted(commands: &[String]) {
    if let Some(reason) = missing_program(&["tc", "ip"]) {
        skip!("{reason}");
    }
    let script: Vec<String> = commands
        .iter()
        .map(|command| {
            format!(
                "{command} >/dev/null 2>err.$$ ; echo \"$? $(tr '\\n' ' ' < err.$$)\"; rm -f err.$$"
            )
        })
        .collect();
    let script = format!("cd /tmp\n{}", script.join("\n"));
    let Some(output) = in_namespace(&script) else {
        return;
    };
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(answers.lines().count(), commands.len(), "{answers}");
    for (command, answer) in commands.iter().zip(answers.lines()) {
        let (code, words) = answer.split_once(' ').unwrap_or((answer, ""));
        let kernel = words.contains("RTNETLINK answers") || words.contains("Error:");
        let fine = code == "0" || (code == "2" && kernel);
        println!("{command}\n  {answer}");
        assert!(fine, "{command}: {answer}");
    }
}

#[test]
fn tc_accepts_the_words_of_every_scheduler_and_marker() {
    let mut commands = Vec::new();
    for (name, scheduler) in SchedulerConfig::EXAMPLES {
        let queues = if ["fifo", "pfabric", "push-out"].contains(&name) {
            1
        } else {
            3
        };
        let text = format!(
            "queues = {queues}\nbuffer = {{ per-queue = {{ limit = \"1MB\" }} }}\nscheduler = {scheduler}\nclassifier = {{ dscp-map = {{ map = [0], other = 0 }} }}"
        );
        let mut port = port(&text);
        if queues == 3 {
            port.classifier = ClassifierConfig::Dscp;
        }
        commands.extend(words(&port).into_iter().take(8));
        commands.push("tc qdisc delete dev eth0 root 2>/dev/null; true".to_owned());
    }
    for (name, scheme) in SchemeConfig::EXAMPLES {
        if name == "ml-ecn" {
            continue;
        }
        let text = format!(
            "queues = 1\nbuffer = {{ shared = {{ size = \"1MB\" }} }}\nscheduler = \"fifo\"\nmarker = {{ scheme = {scheme} }}"
        );
        commands.extend(words(&port(&text)));
        commands.push("tc qdisc delete dev eth0 root 2>/dev/null; true".to_owned());
    }
    accepted(&commands);
}

#[test]
fn ip_accepts_the_words_of_a_route() {
    let tcp: TcpConfig = toml::from_str("controller = \"reno\"").expect("a transport");
    let commands = transport(&tcp, "eth0", "10.2.0.0/16");
    let routes = commands.into_iter().filter_map(|of| of.words);
    accepted(
        &routes
            .filter(|words| words.starts_with("ip "))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn a_token_bucket_reads_back() {
    let mut port = PortConfig::fifo(BufferConfig::Unlimited);
    port.shaper = toml::from_str("rate = \"1Gbps\"\nbucket = \"15KB\"").ok();
    let commands = words(&port);
    let script = format!("{}\ntc qdisc show dev eth0", commands[0]);
    let Some(output) = in_namespace(&script) else {
        return;
    };
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if error.contains("qdisc kind is unknown") {
        skip!("this kernel has no tbf");
    }
    assert!(
        shown.contains("tbf 8000: root") && shown.contains("rate 1Gbit"),
        "{shown}{error}"
    );
}
