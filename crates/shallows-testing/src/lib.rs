//! Helpers for the tests of all crates: how a test skips, how it waits until it is alone, and how
//! long a search for inputs that break something takes.
//!
//! A test that finds something missing calls [`skip!`] (or [`skipped`], where it returns a value).
//! Each skip is a line in a file of the target directory; the last test program of a run
//! (`tests/skips.rs`) lists them by reason. With `SHALLOWS_REQUIRE_ALL=1` a skip is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::parent_id;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

/// Skips the calling test: records the reason, which is given as to `format!`, and returns.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {{
        $crate::skipped(&format!($($reason)+));
        return;
    }};
}

/// Records that the calling test cannot run here.
///
/// # Panics
/// With `SHALLOWS_REQUIRE_ALL=1`.
pub fn skipped(reason: &str) {
    let reason = reason.trim().lines().next().unwrap_or_default();
    let required = env::var("SHALLOWS_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(
        !required,
        "skipped: {reason} (SHALLOWS_REQUIRE_ALL=1 makes a skip a failure)"
    );
    println!("skipped: {reason}");
    let name = thread::current().name().unwrap_or("?").to_owned();
    let program = env::current_exe().expect("a test is a program");
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo ends the name with a hash.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let line = format!("{}\t{program} {name}\t{reason}\n", parent_id());
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(skips_file())
        .expect("the target directory takes a file");
    // One write, so that lines of threads and processes do not mix.
    file.write_all(line.as_bytes())
        .expect("the file takes a line");
}

/// Lists the skips of this run, by reason, and forgets all. A run is what one parent process
/// started, which is cargo.
pub fn list_skips() -> String {
    let lines = fs::read_to_string(skips_file()).unwrap_or_default();
    let _ = fs::remove_file(skips_file());
    by_reason(&lines, parent_id())
}

fn by_reason(lines: &str, run: u32) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines.lines() {
        let mut parts = line.splitn(3, '\t');
        let of = parts.next().and_then(|run| run.parse().ok());
        if let (true, Some(test), Some(reason)) = (of == Some(run), parts.next(), parts.next()) {
            reasons.entry(reason).or_default().push(test);
        }
    }
    let total: usize = reasons.values().map(Vec::len).sum();
    let mut text = match total {
        0 => "no test was skipped\n".to_owned(),
        1 => "1 test was skipped:\n".to_owned(),
        _ => format!("{total} tests were skipped:\n"),
    };
    for (reason, tests) in &reasons {
        let tests = tests.join(", ");
        writeln!(text, "  {reason}: {tests}").expect("a text takes any line");
    }
    if total > 0 {
        text += "docs/requirements.md says how to install what is missing; \
                 with SHALLOWS_REQUIRE_ALL=1 a skip is a failure\n";
    }
    text
}

/// The file that skips are recorded in: next to the directory of the test programs.
fn skips_file() -> PathBuf {
    let program = env::current_exe().expect("a test is a program");
    let directory = program.ancestors().nth(2).unwrap_or(Path::new("."));
    directory.join("skipped-tests")
}

/// Waits until no other test that must be alone runs on this machine, as a thread of this process
/// or in another one. It is alone until the lock is dropped.
///
/// # Panics
/// If the lock's file cannot be made.
pub fn alone() -> Flock<File> {
    let user = geteuid();
    let path = if user.is_root() {
        PathBuf::from("/run/shallows-tests.lock")
    } else {
        env::temp_dir().join(format!("shallows-tests-{user}.lock"))
    };
    // A lock belongs to an open file, so threads exclude each other as processes do.
    let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| error)
        .expect("waiting for a lock succeeds")
}

/// Tries inputs for as long as `SHALLOWS_FUZZ_SECONDS` says (10 if nothing), and prints the number of
/// them. `batch` tries some that follow from a seed, answers with their number, and panics if one
/// breaks something. Tests that call it are ignored ones with names that begin with `fuzz_for_long`.
///
/// # Panics
/// If the variable is not a number.
pub fn fuzz(what: &str, mut batch: impl FnMut(u64) -> u64) {
    let number = |name: &str, default: u64| {
        let text = env::var(name).ok();
        text.map_or(default, |text| {
            text.parse()
                .unwrap_or_else(|_| panic!("{name} is {text:?}, not a number"))
        })
    };
    let time = Duration::from_secs(number("SHALLOWS_FUZZ_SECONDS", 10));
    // Another part of the space each time, unless a failure is to be repeated.
    let first = number("SHALLOWS_FUZZ_SEED", process::id().into());
    let (start, mut seed, mut count) = (Instant::now(), first, 0);
    while start.elapsed() < time {
        let tried = panic::catch_unwind(AssertUnwindSafe(|| batch(seed)));
        count += tried.unwrap_or_else(|problem| {
            println!("{what}: it happens with SHALLOWS_FUZZ_SEED={seed}");
            panic::resume_unwind(problem)
        });
        seed += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what}: {count} cases in {seconds:.0} s, seeds {first} to {}",
        seed - 1
    );
}

/// Returns whether `PATH` has this program.
pub fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| {
        let found = fs::metadata(directory.join(name));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// The reason to skip a test that needs these programs, if one is missing.
pub fn missing_program(names: &[&str]) -> Option<String> {
    let missing = names.iter().find(|name| !has_program(name))?;
    Some(format!("it needs the program {missing}"))
}

/// Metrics that a dashboard of `packaging/grafana` shows and that are not in this text of
/// Prometheus, as names.
///
/// # Panics
/// If there is no such dashboard, or it shows nothing.
pub fn unknown_to_dashboard(dashboard: &str, exported: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana");
    let path = path.join(dashboard).with_extension("json");
    let text = fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let shown = names.filter(|name| name.starts_with("shallows_"));
    let shown: BTreeSet<String> = shown.map(str::to_owned).collect();
    assert!(!shown.is_empty(), "{} shows nothing", path.display());
    shown.difference(&metric_names(exported)).cloned().collect()
}

/// The names of samples, by the families that a text of Prometheus declares.
fn metric_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = family.split_once(' ').unwrap_or((family, ""));
        let suffixes: &[&str] = match kind {
            "counter" if !name.ends_with("_total") => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    names
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn skips_are_counted_by_reason_and_run() {
        let lines = "7\tcli a\tit needs root\n8\tcli z\tother run\n7\tlive b\tit needs the program ping\n7\tcli c\tit needs root\n";
        let text = by_reason(lines, 7);
        let expected = "3 tests were skipped:\n  it needs root: cli a, cli c\n  it needs the program ping: live b\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("other run"), "{text}");
        assert_eq!(by_reason(lines, 9), "no test was skipped\n");
    }

    #[test]
    #[ignore = "run by a_skip_passes_unless_everything_is_required"]
    fn a_test_that_skips() {
        skip!("it is run by another test");
    }

    #[test]
    fn a_skip_passes_unless_everything_is_required() {
        for (require, passes) in [("0", true), ("1", false)] {
            // Its parent is this program, so the list at the end of the run leaves it out.
            let output = Command::new(env::current_exe().unwrap())
                .args(["--exact", "tests::a_test_that_skips", "--ignored"])
                .env("SHALLOWS_REQUIRE_ALL", require)
                .output()
                .unwrap();
            assert_eq!(output.status.success(), passes, "{output:?}");
        }
    }

    #[test]
    fn two_threads_are_never_alone_together() {
        let busy = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _alone = alone();
                    assert!(!busy.swap(true, Ordering::SeqCst));
                    thread::sleep(Duration::from_millis(5));
                    busy.store(false, Ordering::SeqCst);
                });
            }
        });
    }

    /// A program that stays behind, such as a daemon, must not keep others waiting.
    #[test]
    fn programs_do_not_inherit_the_lock() {
        let _alone = alone();
        let listed = Command::new("sh")
            .args(["-c", "ls -l /proc/$$/fd"])
            .output()
            .unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout);
        assert!(listed.contains("pipe:"), "{listed}");
        assert!(!listed.contains("shallows-tests"), "{listed}");
    }

    #[test]
    fn metrics_that_nobody_exports_are_found() {
        let text = "# TYPE shallows_frames gauge\n# TYPE shallows_sent_frames counter\n\
                    # TYPE shallows_lateness_seconds histogram\n";
        let names: Vec<_> = metric_names(text).into_iter().collect();
        let expected = [
            "shallows_frames",
            "shallows_lateness_seconds_bucket",
            "shallows_lateness_seconds_count",
            "shallows_lateness_seconds_sum",
            "shallows_sent_frames_total",
        ];
        assert_eq!(names, expected);
        let unknown = unknown_to_dashboard("switch", text);
        assert!(unknown.contains("shallows_queue_bytes"), "{unknown:?}");
        assert!(
            !unknown.contains("shallows_sent_frames_total"),
            "{unknown:?}"
        );
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(has_program("sh"));
        let missing = missing_program(&["sh", "no-such-program"]);
        assert_eq!(
            missing.as_deref(),
            Some("it needs the program no-such-program")
        );
    }
}
