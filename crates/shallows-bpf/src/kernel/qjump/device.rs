//! Devices, as iproute2 shows and sets them.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use shallows_core::units::Bytes;

use crate::kernel::namespaces;
use crate::qjump::{Device, Error};

const ETHERNET_HEADER: u64 = 14;

/// A device that is there.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) device: Device,
    pub(super) index: u32,
    /// Of its network namespace.
    pub(super) namespace: u64,
    kind: String,
    mtu: u64,
}

/// `ip -json link show`.
#[derive(Deserialize)]
struct Link {
    ifindex: u32,
    link_type: String,
    mtu: u64,
}

impl Found {
    pub(super) fn find(device: &Device) -> Result<Self, Error> {
        let namespace = inode(device)?;
        let shown = ask(device, "ip", &["-details", "-json", "link", "show", "dev"]);
        let shown = shown.map_err(|error| match error {
            Error::Command { problem, .. } if problem.contains("does not exist") => {
                Error::NoDevice(device.clone())
            }
            error => error,
        })?;
        let [link] = serde_json::from_str::<[Link; 1]>(&shown).map_err(|error| Error::Command {
            command: "ip -details -json link show".to_owned(),
            problem: error.to_string(),
        })?;
        Ok(Self {
            device: device.clone(),
            index: link.ifindex,
            namespace,
            kind: link.link_type,
            mtu: link.mtu,
        })
    }

    pub(super) fn check_ethernet(&self) -> Result<(), Error> {
        match &*self.kind {
            "ether" | "loopback" => Ok(()),
            _ => Err(Error::NotEthernet(self.device.clone())),
        }
    }

    /// The largest frame, without its check sequence.
    pub(super) fn frame(&self) -> Bytes {
        Bytes::new(self.mtu + ETHERNET_HEADER)
    }

    /// Returns whether there is a clsact qdisc.
    pub(super) fn has_clsact(&self) -> Result<bool, Error> {
        let shown = ask(&self.device, "tc", &["qdisc", "show", "dev"])?;
        Ok(shown.contains("qdisc clsact"))
    }

    /// Returns whether the clsact qdisc has filters.
    pub(super) fn has_filters(&self) -> Result<bool, Error> {
        for direction in ["ingress", "egress"] {
            let arguments = ["filter", "show", direction, "dev"];
            if !ask(&self.device, "tc", &arguments)?.trim().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The network namespace of a device.
pub(super) fn namespace(device: &Device) -> Result<File, Error> {
    let Some(name) = &device.netns else {
        let path = Path::new(namespaces::OURS);
        return Ok(File::open(path).map_err(crate::kernel::pins::file("open", path))?);
    };
    File::open(Path::new("/run/netns").join(name)).map_err(|source| Error::NoNamespace {
        name: name.clone(),
        source,
    })
}

/// The inode of a device's network namespace.
pub(super) fn inode(device: &Device) -> Result<u64, Error> {
    let path = Path::new(namespaces::OURS);
    let metadata = namespace(device)?.metadata();
    Ok(metadata
        .map_err(crate::kernel::pins::file("look at", path))?
        .ino())
}

/// Runs `ip` or `tc` on a device, whose name comes last.
fn ask(device: &Device, program: &str, arguments: &[&str]) -> Result<String, Error> {
    let arguments = [arguments, &[&device.name]].concat();
    run(device.netns.as_deref(), program, &arguments)
}

/// Runs `ip` or `tc`, in another network namespace if one is given.
pub(super) fn run(netns: Option<&str>, program: &str, arguments: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(program);
    if let Some(netns) = netns {
        command.args(["-netns", netns]);
    }
    let output = command.args(arguments).output();
    let failed = |problem: String| Error::Command {
        command: format!("{program} {}", arguments.join(" ")),
        problem,
    };
    let output = output.map_err(|error| failed(format!("{error}; install iproute2")))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let problem = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(failed(problem))
    }
}
