//! Mistakes in `[hosts.xco]`.

use snapbox::str;

use super::refused;

#[test]
fn xco_without_an_end() {
    refused(
        "[topology",
        "[hosts.xco]\nslot = \"1ms\"\n\n[topology",
        str![[r#"
error: hosts keep reporting to the controller, so the run would not end
 --> tiny.toml:3:8
  |
3 | [hosts.xco]
  |        ^^^
  = set until = "1s" at the top of the file, or use --until

"#]],
    );
}

#[test]
fn xco_with_its_controller_nowhere() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\ncontroller = 99\n\n[topology",
        str![[r#"
error: the controller is at host 99, the fabric has hosts 0 to 3
 --> tiny.toml:6:1
  |
6 | controller = 99
  | ^^^^^^^^^^

"#]],
    );
}

#[test]
fn xco_with_hosts_that_leave_between_two_reports() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\nprotocol = { silence = \"300ms\" }\n\n[topology",
        str![[r#"
error: silence of 300ms must be at least four times keepalive, which is 100ms
 --> tiny.toml:6:14
  |
6 | protocol = { silence = "300ms" }
  |              ^^^^^^^

"#]],
    );
}

#[test]
fn xco_on_demand_with_thresholds_the_wrong_way_round() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\non-demand = { leave = 90 }\n\n[topology",
        str![[r#"
error: leave of 90% must be below enter, which is 80%
 --> tiny.toml:6:15
  |
6 | on-demand = { leave = 90 }
  |               ^^^^^

"#]],
    );
}

#[test]
fn xco_with_a_hierarchy_and_a_standby() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\nstandby = true\nhierarchy = { pod-hosts = 2 }\n\n[topology",
        str![[r#"
error: a hierarchy has controllers of its own, out of band and without standby: leave out standby
 --> tiny.toml:6:1
  |
6 | standby = true
  | ^^^^^^^

"#]],
    );
}

#[test]
fn xco_with_slots_that_nobody_hears_of_in_time() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\ndelay = \"1ms\"\n\n[topology",
        str![[r#"
error: a slot of 2ms ends before a host receives it: messages take 1ms each way
 --> tiny.toml:6:1
  |
6 | delay = "1ms"
  | ^^^^^

"#]],
    );
}

#[test]
fn xco_with_an_outage_of_no_controller() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\noutages = [{ controller = 1, crash = \"5ms\" }]\n\n[topology",
        str![[r#"
error: outage of controller 1, their numbers end at 0; 1 is the standby, which standby = true adds
 --> tiny.toml:6:1
  |
6 | outages = [{ controller = 1, crash = "5ms" }]
  | ^^^^^^^

"#]],
    );
}

#[test]
fn xco_with_a_weight_of_nobody() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\nweights = [{ host = 99, weight = 4 }]\n\n[topology",
        str![[r#"
error: host 99 has a weight, the fabric has hosts 0 to 3
 --> tiny.toml:6:1
  |
6 | weights = [{ host = 99, weight = 4 }]
  | ^^^^^^^

"#]],
    );
}
