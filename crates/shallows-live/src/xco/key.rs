//! Files with keys.
//!
//! Controllers have the cluster's key. A host has its own, which is derived from that, so that
//! whoever breaks into a host can speak for that host only. In a hierarchy the controllers of a pod
//! have a key derived from the cluster's, and a host has two: one for the root, one for its pod.
//!
//! ```text
//! shallows-xco cluster 000102030405060708090a0b0c0d0e0f
//! shallows-xco host h3 0f0e0d0c0b0a09080706050403020100
//! shallows-xco pod rack0 00112233445566778899aabbccddeeff
//! ```

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use shallows_core::xco::message::{ClusterKey, Key};
use thiserror::Error;

use crate::switch::Level;

/// First word of a key file.
const MAGIC: &str = "shallows-xco";

/// A key as a file has it.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyFile {
    /// The controllers'.
    Cluster([u8; 16]),
    /// The controllers' of a pod, in a hierarchy.
    Pod {
        /// The pod's name.
        name: String,
        /// The key.
        key: [u8; 16],
    },
    /// A host's.
    Host {
        /// Its name.
        name: String,
        /// The key.
        key: [u8; 16],
        /// The key in its pod, where the cluster has a hierarchy.
        pod: Option<[u8; 16]>,
    },
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFile(..)")
    }
}

/// The reason why a key cannot be used.
#[derive(Debug, Error)]
pub enum KeyError {
    /// It cannot be read or written.
    #[error("the key {path}: {error}; `shallows controller key` makes one")]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// Others can read it.
    #[error(
        "the key {path} can be read by others (mode {mode:03o}): chmod 600 {path}",
        path = .path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else can change it.
    #[error(
        "the key {path} belongs to user {owner}, who can change it: chown {own} {path}",
        path = .path.display()
    )]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The reader.
        own: u32,
    },
    /// It is something else.
    #[error(
        "{0} is no key: it should read `{MAGIC} cluster` or `{MAGIC} host NAME`, and 32 \
         hexadecimal digits; `shallows controller key` makes one"
    )]
    Syntax(PathBuf),
    /// A controller with the key of a host.
    #[error("{0} is the key of a host; a controller needs that of the cluster")]
    NotCluster(PathBuf),
    /// An agent with the key of the cluster.
    #[error(
        "{0} is the cluster's key, which must not leave the controllers: make this host's with \
         `shallows controller key --config FILE --host {1}`"
    )]
    NotHost(PathBuf, String),
    /// A pod's controller with another key.
    #[error(
        "{0} is not the key of pod {1}, which its controllers need: make it with `shallows \
         controller key --config FILE --pod {1}` where the cluster's key is"
    )]
    NotPod(PathBuf, String),
    /// A host of a hierarchy without its second key.
    #[error(
        "{0} has no key for the pod of {1}: make it again with `shallows controller key --config \
         FILE --host {1}`"
    )]
    NoPodKey(PathBuf, String),
    /// An agent with another's key.
    #[error("{path} is the key of {found}, and this is {name}")]
    OtherHost {
        /// The file.
        path: PathBuf,
        /// Owner of the key.
        found: String,
        /// Expected owner.
        name: String,
    },
}

/// The keys of a host.
#[derive(Clone, Debug)]
pub struct HostKeys {
    /// For the cluster, or the root of its hierarchy.
    own: Key,
    /// For its pod.
    pod: Option<Key>,
}

impl From<Key> for HostKeys {
    /// The keys of a host of a cluster without a hierarchy.
    fn from(own: Key) -> Self {
        Self { own, pod: None }
    }
}

impl HostKeys {
    /// Refuses keys without that of a pod, for a host of a hierarchy.
    pub fn with_pod(self, path: &Path, name: &str) -> Result<Self, KeyError> {
        match self.pod {
            Some(_) => Ok(self),
            None => Err(KeyError::NoPodKey(path.to_owned(), name.to_owned())),
        }
    }

    /// The key of a level.
    pub fn of(&self, level: Level) -> &Key {
        match level {
            Level::Cluster | Level::Root => &self.own,
            Level::Pod => self.pod.as_ref().unwrap_or(&self.own),
        }
    }
}

impl KeyFile {
    /// A new key for a cluster.
    pub fn random() -> io::Result<Self> {
        let mut key = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self::Cluster(key))
    }

    /// Reads a file that nobody else may read.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| KeyError::File {
            path: path.to_owned(),
            error,
        };
        // All questions to one file, whatever takes its place meanwhile.
        let mut file = File::open(path).map_err(failed)?;
        let of = file.metadata().map_err(failed)?;
        let mode = of.mode() & 0o777;
        if mode & 0o077 != 0 {
            let path = path.to_owned();
            return Err(KeyError::Open { path, mode });
        }
        let (owner, own) = (of.uid(), geteuid().as_raw());
        if ![0, own].contains(&owner) {
            let path = path.to_owned();
            return Err(KeyError::Owner { path, owner, own });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Self::parse(&text).ok_or_else(|| KeyError::Syntax(path.to_owned()))
    }

    /// Writes a new file that nobody else may read.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        let failed = |error| KeyError::File {
            path: path.to_owned(),
            error,
        };
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let written = file.and_then(|mut file| file.write_all(self.text().as_bytes()));
        written.map_err(failed)
    }

    /// The cluster's key.
    pub fn cluster(&self, path: &Path) -> Result<ClusterKey, KeyError> {
        match self {
            Self::Cluster(key) => Ok(ClusterKey::new(*key)),
            Self::Pod { .. } | Self::Host { .. } => Err(KeyError::NotCluster(path.to_owned())),
        }
    }

    /// The key of a pod's controllers.
    pub fn pod(&self, path: &Path, name: &str) -> Result<ClusterKey, KeyError> {
        match self {
            Self::Pod { name: found, key } if found == name => Ok(ClusterKey::new(*key)),
            _ => Err(KeyError::NotPod(path.to_owned(), name.to_owned())),
        }
    }

    /// The key of the host of this name.
    pub fn host(&self, path: &Path, name: &str) -> Result<HostKeys, KeyError> {
        match self {
            Self::Host {
                name: found,
                key,
                pod,
            } if found == name => Ok(HostKeys {
                own: Key::new(*key),
                pod: pod.map(Key::new),
            }),
            Self::Host { name: found, .. } => Err(KeyError::OtherHost {
                path: path.to_owned(),
                found: found.clone(),
                name: name.to_owned(),
            }),
            Self::Cluster(_) | Self::Pod { .. } => {
                Err(KeyError::NotHost(path.to_owned(), name.to_owned()))
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        if words.next() != Some(MAGIC) {
            return None;
        }
        let kind = words.next()?;
        let name = match kind {
            "cluster" => None,
            "host" | "pod" => Some(words.next()?.to_owned()),
            _ => return None,
        };
        let digits = |word: &str| {
            let number = u128::from_str_radix(word, 16).ok()?;
            (word.len() == 32).then(|| number.to_be_bytes())
        };
        let key = digits(words.next()?)?;
        let pod = words.next().map(digits);
        if words.next().is_some() {
            return None;
        }
        match (kind, name, pod) {
            ("host", Some(name), None) => Some(Self::Host {
                name,
                key,
                pod: None,
            }),
            ("host", Some(name), Some(pod)) => Some(Self::Host {
                name,
                key,
                pod: Some(pod?),
            }),
            ("pod", Some(name), None) => Some(Self::Pod { name, key }),
            ("cluster", None, None) => Some(Self::Cluster(key)),
            _ => None,
        }
    }

    fn text(&self) -> String {
        let (mut text, keys) = match self {
            Self::Cluster(key) => (format!("{MAGIC} cluster"), [Some(key), None]),
            Self::Pod { name, key } => (format!("{MAGIC} pod {name}"), [Some(key), None]),
            Self::Host { name, key, pod } => {
                (format!("{MAGIC} host {name}"), [Some(key), pod.as_ref()])
            }
        };
        for key in keys.into_iter().flatten() {
            text.push(' ');
            for byte in key {
                write!(text, "{byte:02x}").expect("a text takes any line");
            }
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_come_back_from_their_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let cluster = KeyFile::random().unwrap();
        cluster.write(&path).unwrap();
        assert_eq!(KeyFile::read(&path).unwrap(), cluster);
        let again = cluster.write(&path).unwrap_err().to_string();
        assert!(again.contains("File exists"), "{again}");
        let derived = cluster.cluster(&path).unwrap().named_host("h3").bytes();
        let host = KeyFile::Host {
            name: "h3".to_owned(),
            key: derived,
            pod: None,
        };
        assert_eq!(KeyFile::parse(&host.text()), Some(host.clone()));
        assert_eq!(host.host(&path, "h3").unwrap().own.bytes(), derived);
        for error in [
            host.host(&path, "h4").err().unwrap(),
            host.cluster(&path).err().unwrap(),
            cluster.host(&path, "h3").err().unwrap(),
        ] {
            assert!(error.to_string().contains("key"), "{error}");
        }
    }

    #[test]
    fn keys_that_others_can_read_and_nonsense_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let missing = KeyFile::read(&path).unwrap_err().to_string();
        assert!(missing.contains("shallows controller key"), "{missing}");
        KeyFile::random().unwrap().write(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let open = KeyFile::read(&path).unwrap_err().to_string();
        assert!(open.contains("mode 640): chmod 600"), "{open}");
        // Only root can give a file away.
        if geteuid().is_root() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            let foreign = KeyFile::read(&path).unwrap_err().to_string();
            assert!(foreign.contains("belongs to user 65534"), "{foreign}");
        }
        for text in ["", "shallows-xco cluster 12", "shallows-xco other 1", "x"] {
            assert_eq!(KeyFile::parse(text), None, "{text}");
        }
    }
}
