//! Build ids: hashes of the code and data that decide the results of a run, simulated or live.
//!
//! They are hashes of sources rather than of the executable's bytes, so that debug and release
//! builds, and the machines of a cluster, share their kept runs. Figures, pages and commands change
//! no run and are left out.

mod lockfile;
mod sources;
mod tokens;

use std::env;
use std::path::Path;

fn main() -> Result<(), sources::SourceError> {
    set_cfg_live();
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    for (name, parts) in [
        ("SHALLOWS_BUILD_ID", sources::SIMULATED),
        ("SHALLOWS_LIVE_BUILD_ID", sources::LIVE),
    ] {
        let covered = sources::Covered::of(Path::new("."), parts)?;
        for path in &covered.watched {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        println!("cargo::rustc-env={name}={:016x}", covered.id(&version));
    }
    Ok(())
}

/// Sets `cfg(live)` where the live world is built: with the feature, on Linux.
fn set_cfg_live() {
    println!("cargo::rustc-check-cfg=cfg(live)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_LIVE").is_some() {
        println!("cargo::rustc-cfg=live");
    }
}
