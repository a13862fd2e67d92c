//! `shallows sonic import`.

use std::path::PathBuf;

use clap::Args;
use shallows_core::units::Bytes;
use shallows_operate::sonic::{self, ImportOptions, PortName};

use super::read;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The configuration, a config_db.json.
    #[arg(value_name = "CONFIG_DB")]
    config: PathBuf,
    /// Links of the scenario that have a port like this one, such as 'Ethernet48=leaf*->spine*';
    /// several with commas. All other ports of switches are like most ports of the file.
    #[arg(long, value_name = "PORT=LINKS", value_parser = links)]
    links: Vec<(PortName, Vec<String>)>,
    /// Size of the buffer pool, where the file leaves it to the switch.
    #[arg(long, value_name = "BYTES")]
    pool: Option<Bytes>,
}

/// A port and the links that have one like it.
pub(super) fn links(text: &str) -> Result<(PortName, Vec<String>), String> {
    let expected = "write PORT=LINKS, such as 'Ethernet48=leaf*->spine*'";
    let (port, links) = text.split_once('=').ok_or(expected)?;
    let links: Vec<String> = links
        .split(',')
        .map(|link| link.trim().to_owned())
        .collect();
    if port.is_empty() || links.iter().any(String::is_empty) {
        return Err(expected.to_owned());
    }
    Ok((PortName::new(port), links))
}

pub(super) fn import(args: &ImportArgs) -> Result<(), Failure> {
    let db = read(&args.config)?;
    let options = ImportOptions {
        pool: args.pool,
        links: args.links.clone(),
    };
    let ports = sonic::import(&db, &options).map_err(|error| Failure::File(error.into()))?;
    Ok(output::print(&ports.to_toml())?)
}
