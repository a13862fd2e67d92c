//! Lists the files of `repro/` that are embedded: those of papers and their recorded results; and
//! says whether the live world is built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    set_cfg_live();
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("repro");
    println!("cargo::rerun-if-changed=repro");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for path in files {
        let name = path.strip_prefix(&root).expect("it is below it");
        let [name, path] = [name, &path].map(|path| path.to_str().expect("its name is text"));
        println!("cargo::rerun-if-changed={path}");
        let _ = writeln!(list, "    ({name:?}, include_str!({path:?})),");
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("repro.rs"), list).expect("cargo's directory can be written");
}

/// Sets `cfg(live)` where the live world is built: with the feature, on Linux.
fn set_cfg_live() {
    println!("cargo::rustc-check-cfg=cfg(live)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_LIVE").is_some() {
        println!("cargo::rustc-cfg=live");
    }
}

/// All TOML and CSV files below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).expect("the directory of papers can be read");
    for entry in entries {
        let path = entry.expect("its entries can be read").path();
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() {
            collect(&path, files);
        } else if extension == "toml" || extension == "csv" {
            files.push(path);
        }
    }
}
