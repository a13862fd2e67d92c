//! Ctrl-C and SIGTERM.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

/// True once the user has pressed Ctrl-C; the second time ends the program.
pub(crate) fn watch_for_ctrl_c() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&interrupted);
    on_ctrl_c(move || seen.store(true, Ordering::Relaxed))?;
    Ok(interrupted)
}

/// Does something at the first Ctrl-C or SIGTERM; the second ends the program.
pub(crate) fn on_ctrl_c(stop: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    let seen = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
        stop();
    })
    .context("cannot watch for Ctrl-C")
}
