//! Files that a scenario reads, kept beside its results so that the run can be repeated.
//!
//! What is no regular file, such as `/dev/stdin`, can be read only once and may have no end. It is
//! read into a temporary file as the scenario is loaded, up to a limit.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use shallows_model::workload::{
    AllToAllConfig, CdfConfig, DrawnSize, IncastConfig, PermutationConfig, PoissonConfig,
    SizeConfig, WorkloadConfig,
};
use tempfile::NamedTempFile;

/// Most bytes of something that is no regular file.
const MOST_BYTES: u64 = 4_000_000_000;

/// Most bytes of a line in it.
const LONGEST_LINE: usize = 100_000;

/// Contents of files that can be read only once, by path.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(BTreeMap<PathBuf, Arc<NamedTempFile>>);

impl Streams {
    /// Reads the streams among the files of workloads that were not read before; then their paths
    /// lead to what was read.
    pub(super) fn keep(&mut self, workloads: &mut [WorkloadConfig]) -> Result<(), String> {
        for path in workloads.iter_mut().flat_map(paths) {
            let is_stream =
                fs::metadata(&*path).is_ok_and(|found| !found.is_file() && !found.is_dir());
            if !is_stream {
                continue;
            }
            if !self.0.contains_key(path) {
                let kept = copy(path).map_err(|error| format!("{}: {error}", path.display()))?;
                self.0.insert(path.clone(), Arc::new(kept));
            }
            *path = self.0[path].path().to_owned();
        }
        Ok(())
    }
}

fn copy(path: &Path) -> io::Result<NamedTempFile> {
    let mut reader = BufReader::new(File::open(path)?.take(MOST_BYTES));
    let extension = path.extension().unwrap_or("csv".as_ref()).to_string_lossy();
    let mut file = tempfile::Builder::new()
        .suffix(&format!(".{extension}"))
        .tempfile()?;
    let (mut bytes, mut line) = (0, 0);
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            line = if part.ends_with(b"\n") {
                0
            } else {
                line + part.len()
            };
        }
        if line > LONGEST_LINE {
            let problem = format!("a line is longer than {LONGEST_LINE} bytes; it is no table");
            return Err(io::Error::other(problem));
        }
        file.write_all(chunk)?;
        let read = chunk.len();
        bytes += read as u64;
        reader.consume(read);
    }
    if bytes == MOST_BYTES {
        let problem = format!("it is longer than {MOST_BYTES} bytes; read it from a file");
        return Err(io::Error::other(problem));
    }
    Ok(file)
}

/// A copy of a file.
#[derive(Debug)]
pub struct Input {
    /// Path relative to the results.
    pub path: PathBuf,
    pub content: Vec<u8>,
}

/// The files that workloads read; their paths then lead to the copies.
pub(super) fn collect(workloads: &mut [WorkloadConfig]) -> anyhow::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in workloads.iter_mut().flat_map(paths) {
        let content =
            fs::read(&*path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut copy = PathBuf::from(format!("inputs/{}", inputs.len()));
        copy.set_extension(path.extension().unwrap_or_default());
        path.clone_from(&copy);
        inputs.push(Input {
            path: copy,
            content,
        });
    }
    Ok(inputs)
}

/// The paths of the files that workloads read.
pub(super) fn read_by(workloads: &[WorkloadConfig]) -> Vec<PathBuf> {
    let mut workloads = workloads.to_vec();
    let paths = workloads.iter_mut().flat_map(paths);
    paths.map(|path| path.clone()).collect()
}

fn paths(workload: &mut WorkloadConfig) -> Vec<&mut PathBuf> {
    match workload {
        WorkloadConfig::List(path) => vec![path],
        WorkloadConfig::Poisson(PoissonConfig { size, .. })
        | WorkloadConfig::Permutation(PermutationConfig { size, .. })
        | WorkloadConfig::AllToAll(AllToAllConfig { size, .. })
        | WorkloadConfig::Incast(IncastConfig {
            size: Some(size), ..
        }) => size_paths(size),
        WorkloadConfig::Flows(_)
        | WorkloadConfig::LongLived(_)
        | WorkloadConfig::Incast(_)
        | WorkloadConfig::Udp(_) => Vec::new(),
    }
}

fn size_paths(size: &mut SizeConfig) -> Vec<&mut PathBuf> {
    match size {
        SizeConfig::Drawn(DrawnSize::Cdf(CdfConfig::Table(table))) => {
            table.file.iter_mut().collect()
        }
        SizeConfig::Drawn(DrawnSize::ByService(sizes)) => {
            sizes.iter_mut().flat_map(size_paths).collect()
        }
        SizeConfig::Fixed(_) | SizeConfig::Drawn(DrawnSize::Cdf(CdfConfig::Named(_))) => Vec::new(),
    }
}
