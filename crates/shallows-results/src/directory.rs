//! The directory of a run's results: made apart, put into place when it is complete.
//!
//! A run writes into a hidden directory within the one that the user named, and
//! [`publish`](ResultDirectory::publish) moves its files to their places, `summary.json` last. A list of them with
//! their hashes (`run.sha256`, which `sha256sum --check` reads) stays with the results. The next
//! run into the same directory removes what the list names and nothing else, and only what still
//! has the listed content. A lock on the directory keeps a second run out meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::ResultsError;
use crate::file::{read_named, read_text, write_named, write_text};

/// The list of the files that a run wrote.
pub const LIST: &str = "run.sha256";
/// Its first line. Lists of other programs do not have it.
const HEADER: &str = "# Files of a Shallows run. The next run into this directory replaces them.";
/// Directory in which a run is written before it is complete.
const UNFINISHED: &str = ".shallows-unfinished";
/// Removed first and put into place last: without it a directory holds no complete record.
const SUMMARY: &str = "summary.json";

type Problem = Box<dyn Error + Send + Sync>;

/// The hashes that each file of a list may have.
type Files = BTreeMap<PathBuf, BTreeSet<String>>;

/// A directory of results in the making. Dropped before it is [published](Self::publish), it leaves
/// everything as it was.
#[derive(Debug)]
pub struct ResultDirectory {
    target: PathBuf,
    unfinished: PathBuf,
    /// Files of the previous run.
    before: Files,
    /// True if the directory was not there before.
    created: bool,
    keep_unfinished: bool,
    _lock: Option<File>,
}

impl ResultDirectory {
    /// Makes a directory ready for one run. Refused are symbolic links, directories with files that
    /// no run wrote (unless a run before has left its list there), files of that run that were
    /// changed, and directories that another run is writing to.
    pub fn begin(directory: &Path) -> Result<Self, ResultsError> {
        // Without a slash at the end, which would follow a link.
        let target: PathBuf = directory.components().collect();
        write_named(directory, || {
            refuse_link(&target)?;
            let created = !target.exists();
            fs::create_dir_all(&target)?;
            let lock = lock(&target)?;
            let before = read_list(&target)?;
            check(&target, &before)?;
            let unfinished = target.join(UNFINISHED);
            refuse_link(&unfinished)?;
            // Of a run that was killed: the lock says that it is gone.
            ignore_missing(fs::remove_dir_all(&unfinished))?;
            fs::create_dir(&unfinished)?;
            Ok(Self {
                target: target.clone(),
                unfinished,
                before,
                created,
                keep_unfinished: false,
                _lock: lock,
            })
        })
    }

    /// Directory in which the run writes its files.
    pub fn path(&self) -> &Path {
        &self.unfinished
    }

    /// Final directory of the files.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Refuses files that the run reads and that would be replaced by others.
    pub fn refuse_inputs<P: AsRef<Path>>(
        &self,
        inputs: impl IntoIterator<Item = P>,
    ) -> Result<(), ResultsError> {
        write_named(&self.target, || {
            let target = self.target.canonicalize()?;
            for input in inputs {
                // What is not there any more cannot be lost.
                let Ok(input) = input.as_ref().canonicalize() else {
                    continue;
                };
                let Ok(within) = input.strip_prefix(&target) else {
                    continue;
                };
                let again = self.unfinished.join(within);
                let same = || Some(hash(&input).ok()? == hash(&again).ok()?);
                if self.before.contains_key(within) && same() != Some(true) {
                    let name = input.display();
                    return Err(format!(
                        "the run reads {name}, which its results would replace; write them to \
                         another directory"
                    )
                    .into());
                }
            }
            Ok(())
        })
    }

    /// Removes the files of the run before and puts those of this one into their places.
    pub fn publish(mut self) -> Result<(), ResultsError> {
        // From here on the results are worth keeping, whatever happens.
        self.keep_unfinished = true;
        write_named(&self.target, || {
            self.replace().map_err(|error| {
                let place = self.unfinished.display();
                format!("{error}; the results are in {place} until the next run").into()
            })
        })?;
        self.keep_unfinished = false;
        Ok(())
    }

    fn replace(&self) -> Result<(), Problem> {
        let mut new = Files::new();
        for path in files(&self.unfinished)? {
            let within = path.strip_prefix(&self.unfinished)?.to_owned();
            let there = self.target.join(&within);
            if !self.before.contains_key(&within) && there.symlink_metadata().is_ok() {
                let name = there.display();
                return Err(format!("{name} is not of a run: move it away").into());
            }
            new.insert(within, BTreeSet::from([hash(&path)?]));
        }
        // Whenever this is ended, the list has all that is there.
        let mut both = self.before.clone();
        for (path, hashes) in &new {
            both.entry(path.clone()).or_default().extend(hashes.clone());
        }
        write_list(&self.target, &both)?;
        let summary = Path::new(SUMMARY);
        ignore_missing(fs::remove_file(self.target.join(summary)))?;
        for path in self.before.keys() {
            ignore_missing(fs::remove_file(self.target.join(path)))?;
            self.remove_empty_parents(path);
        }
        let others = new.keys().filter(|path| *path != summary);
        for path in others.chain(new.keys().filter(|path| *path == summary)) {
            let place = self.target.join(path);
            fs::create_dir_all(place.parent().unwrap_or(&self.target))?;
            fs::rename(self.unfinished.join(path), place)?;
        }
        Ok(write_list(&self.target, &new)?)
    }

    fn remove_empty_parents(&self, path: &Path) {
        for parent in path.ancestors().skip(1) {
            // One that is not empty has files of somebody else.
            if parent.as_os_str().is_empty() || fs::remove_dir(self.target.join(parent)).is_err() {
                return;
            }
        }
    }
}

/// The files that the list of a directory names and that are missing or have other content now.
pub fn changed_files(directory: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    read_named(directory, || {
        let listed = read_list(directory)?;
        if listed.is_empty() {
            return Err(format!("there is no list of files ({LIST})").into());
        }
        let is_as_listed = |(file, hashes): &(&PathBuf, &BTreeSet<String>)| {
            hash(&directory.join(file)).is_ok_and(|found| hashes.contains(&found))
        };
        let changed = listed.iter().filter(|entry| !is_as_listed(entry));
        Ok(changed.map(|(file, _)| file.clone()).collect())
    })
}

impl Drop for ResultDirectory {
    fn drop(&mut self) {
        if self.keep_unfinished {
            return;
        }
        _ = fs::remove_dir_all(&self.unfinished);
        if self.created {
            // If nothing came of it.
            _ = fs::remove_dir(&self.target);
        }
    }
}

/// Locks a directory until the file is closed, which the end of a program does as well. File
/// systems without locks for directories have none.
#[cfg(unix)]
fn lock(directory: &Path) -> Result<Option<File>, Problem> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    let file = File::open(directory)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(
            "another run is writing to it; wait for its end, or write to \
                                       another directory"
                .into(),
        ),
        Err(_) => Ok(None),
    }
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn lock(_directory: &Path) -> Result<Option<File>, Problem> {
    Ok(None)
}

/// Refuses what the next run must not replace.
fn check(target: &Path, before: &Files) -> Result<(), Problem> {
    if before.is_empty() {
        let mut names = Vec::new();
        for entry in fs::read_dir(target)? {
            let name = entry?.file_name();
            if name != UNFINISHED && name != LIST {
                names.push(name);
            }
        }
        names.sort();
        if let Some(first) = names.first() {
            let name = first.display();
            return Err(format!(
                "it holds {name}, which is not of a run; write to another directory, or remove \
                 what is in it"
            )
            .into());
        }
    }
    for (path, hashes) in before {
        let place = target.join(path);
        let links = path.ancestors().map(|part| target.join(part));
        for part in links.filter(|part| part != &target.join("")) {
            refuse_link(&part)?;
        }
        if place.symlink_metadata().is_ok() && !hashes.contains(&hash(&place)?) {
            let name = place.display();
            return Err(format!(
                "{name} has changed since the run that wrote it; move it away, or write to \
                 another directory"
            )
            .into());
        }
    }
    Ok(())
}

/// The files of the run before; none without a list.
fn read_list(target: &Path) -> Result<Files, Problem> {
    let path = target.join(LIST);
    refuse_link(&path)?;
    let text = match read_text(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Files::new()),
        text => text?,
    };
    let wrong = || format!("{} is not the list of a run; move it away", path.display());
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(wrong().into());
    }
    let mut files = Files::new();
    for line in lines {
        let (hash, name) = line.split_once("  ").ok_or_else(wrong)?;
        let name = PathBuf::from(name);
        let mut parts = name.components();
        if !parts.all(|part| matches!(part, Component::Normal(_))) || name == Path::new("") {
            return Err(wrong().into());
        }
        files.entry(name).or_default().insert(hash.to_owned());
    }
    Ok(files)
}

fn write_list(target: &Path, files: &Files) -> Result<(), ResultsError> {
    let mut text = format!("{HEADER}\n");
    for (path, hashes) in files {
        for hash in hashes {
            _ = writeln!(text, "{hash}  {}", path.display());
        }
    }
    write_text(&target.join(LIST), &text)
}

/// The regular files below a directory, in order.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The hash of a regular file; what a link leads to may have no end.
fn hash(path: &Path) -> io::Result<String> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hash))?;
    Ok(hexadecimal(&hash.finalize()))
}

/// Bytes as text, two digits each.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn refuse_link(path: &Path) -> Result<(), Problem> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(format!(
            "{} is a symbolic link; write to where it leads",
            path.display()
        )
        .into()),
        _ => Ok(()),
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests;
