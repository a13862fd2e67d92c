//! Says whether the live world is built.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    set_cfg_live();
}

/// Sets `cfg(live)` where the live world is built: with the feature, on Linux.
fn set_cfg_live() {
    println!("cargo::rustc-check-cfg=cfg(live)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_LIVE").is_some() {
        println!("cargo::rustc-cfg=live");
    }
}
