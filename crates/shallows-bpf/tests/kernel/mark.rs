//! A level for the sockets of an unmodified program.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use shallows_bpf::mark::{self, Mark, Method};
use shallows_bpf::qjump::priority_of;
use shallows_core::units::Bytes;
use shallows_testing::{alone, missing_program, skip};

#[test]
fn iperf3_has_the_level_it_is_run_with() {
    if let Err(reason) = shallows_bpf::check() {
        skip!("{reason}");
    }
    if let Some(reason) = missing_program(&["iperf3"]) {
        skip!("{reason}");
    }
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pid");
    let mark = Mark {
        level: 5,
        dscp: 40,
        send_buffer: Some(Bytes::new(32_000)),
        window: None,
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            // A child of a shell, to see that children are marked too.
            let line = format!("iperf3 -s -1 -p 25201 -I {}; exit 3", pid_file.display());
            let mut command = Command::new("sh");
            command
                .args(["-c", &line])
                .stdout(std::process::Stdio::null());
            mark::run(&mark, &mut command, || ()).unwrap()
        });
        let pid = wait_for_pid(&pid_file);
        assert_eq!(
            mark::method(pid).unwrap(),
            Some(Method::Cgroup { level: 5 })
        );
        let sockets = mark::sockets(pid).unwrap();
        let client = Command::new("iperf3")
            .args(["-c", "127.0.0.1", "-p", "25201", "-t", "1"])
            .output()
            .unwrap();
        assert!(client.status.success());
        let status = server.join().unwrap();
        assert_eq!(status.code(), Some(3));
        println!("{sockets:?}");
        let [listener] = &sockets[..] else {
            panic!("{sockets:?}");
        };
        let priority = priority_of(5).cast_signed();
        assert_eq!((listener.priority, listener.traffic_class), (priority, 160));
        // The kernel doubles it.
        assert_eq!(listener.send_buffer, 64_000);
    });
    let name = format!("shallows-exec-{}-", std::process::id());
    let left = fs::read_to_string("/proc/self/mounts").unwrap();
    for mount in left.lines().filter(|line| line.contains(" cgroup2 ")) {
        let place = mount.split(' ').nth(1).unwrap();
        let entries = fs::read_dir(place).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert!(!names.into_iter().any(|entry| entry.starts_with(&name)));
    }
}

/// A socket that neither binds nor connects is marked by its first datagram.
#[test]
fn a_socket_that_only_sends_is_marked_too() {
    if let Err(reason) = shallows_bpf::check() {
        skip!("{reason}");
    }
    if let Some(reason) = missing_program(&["python3"]) {
        skip!("{reason}");
    }
    let _alone = alone();
    let mark = Mark {
        level: 1,
        dscp: 11,
        send_buffer: Some(Bytes::new(15_380)),
        window: None,
    };
    let directory = tempfile::tempdir().unwrap();
    let shown = directory.path().join("shown");
    let script = "import socket as s\n\
        of = s.socket(s.AF_INET, s.SOCK_DGRAM)\n\
        of.sendto(b'x', ('127.0.0.1', 9))\n\
        options = [(s.SOL_SOCKET, 12), (s.IPPROTO_IP, s.IP_TOS), (s.SOL_SOCKET, s.SO_SNDBUF)]\n\
        print(*[of.getsockopt(*option) for option in options])";
    let mut command = Command::new("python3");
    command
        .args(["-c", script])
        .stdout(fs::File::create(&shown).unwrap());
    assert!(mark::run(&mark, &mut command, || ()).unwrap().success());
    let shown = fs::read_to_string(shown).unwrap();
    // The kernel doubles the buffer.
    assert_eq!(shown.trim(), format!("{} 44 30760", priority_of(1)));
}

fn wait_for_pid(file: &std::path::Path) -> u32 {
    for _ in 0..200 {
        thread::sleep(Duration::from_millis(50));
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Ok(pid) = text.trim_matches(['\0', '\n', ' ']).parse() {
            return pid;
        }
    }
    panic!("iperf3 does not start");
}
