//! `shallows artifact`: bundles of results, and their check.

use anyhow::{Context as _, anyhow};
use shallows_core::registry::Registry;
use shallows_study::artifact::{Description, bundle, check};

use crate::cli::{ArtifactArgs, ArtifactCommand};
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;

pub(crate) fn artifact(args: &ArtifactArgs, registry: &Registry) -> Result<(), Failure> {
    if let Some(ArtifactCommand::Check { directory }) = &args.command {
        let interrupted = watch_for_ctrl_c()?;
        let checked = check(directory, registry, &interrupted)?;
        output::print(&checked.text)?;
        if !checked.equal {
            return Err(anyhow!("the bundle differs from what it says").into());
        }
        return Ok(());
    }
    let directory = args
        .directory
        .as_ref()
        .context("a bundle has a directory")?;
    let description = Description {
        title: args.title.clone(),
        license: args.license.clone(),
    };
    let runs = bundle(directory, &args.results, description, registry)?;
    let shown = directory.display();
    Ok(output::print(&format!(
        "{runs} runs are in {shown}; `shallows artifact check {shown}` makes them again\n"
    ))?)
}
