//! Compiles the BPF programs, if there is a clang to do it.
//!
//! Without one each object is an empty file, and the operations that need it say what to install.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAMS: [&str; 9] = [
    "dctcp",
    "delay_dctcp",
    "ear",
    "ecn_star",
    "mark",
    "marker",
    "model",
    "qjump",
    "sockets",
];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let include = env::var("DEP_BPF_INCLUDE").ok().filter(|_| runs(&clang));
    if include.is_none() && env::var_os("CARGO_FEATURE_LIBBPF").is_some() {
        println!(
            "cargo:warning=no clang: `shallows cc`, `qjump apply` and `exec` as root will not work until it is installed"
        );
    }
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for program in PROGRAMS {
        let object = Path::new(&out).join(format!("{program}.bpf.o"));
        match &include {
            Some(include) => compile(&clang, include, program, &object),
            None => fs::write(&object, []).expect("the build directory is writable"),
        }
    }
}

fn runs(clang: &str) -> bool {
    let version = Command::new(clang).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

fn compile(clang: &str, include: &str, program: &str, object: &Path) {
    let source = format!("bpf/{program}.bpf.c");
    let status = Command::new(clang)
        // -g is for the types (BTF) that the kernel checks and relocates by.
        .args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror"])
        .args(["-I", include, "-c", &source, "-o"])
        .arg(object)
        .status();
    let done = status.is_ok_and(|status| status.success());
    assert!(done, "{clang} cannot compile {source}");
}
