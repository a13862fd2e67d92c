//! Pages of a bundle for its readers.

use std::fmt::Write as _;

use super::{Artifact, World};

/// Citation of Shallows, in the Citation File Format.
pub fn citation() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "cff-version: 1.2.0
message: If you use Shallows, please cite it, and cite the papers of the systems that you ran.
type: software
title: Shallows
abstract: >-
  A packet-level simulator of datacenter fabrics and a live lab on Linux for MQ-ECN, ML-ECN, EAR,
  QJUMP and XCo.
version: {version}
license:
  - MIT
  - Apache-2.0
authors:
  - name: The Shallows developers
"
    )
}

/// The page that a reader of the bundle opens first.
pub(super) fn readme(artifact: &Artifact) -> String {
    let Artifact { title, version, .. } = artifact;
    let mut text = format!(
        "# {title}

Results of [Shallows](CITATION.cff) {version}: every run with its scenario, its inputs and its tables.

## Check it

Install Shallows {version} from its sources, its wheel or its Debian package. Then, in this directory:

```sh
sha256sum --check run.sha256          # every file is as it was bundled
shallows artifact check .             # makes every simulated run again and compares all bytes
```

One run by hand, here the first:

```sh
"
    );
    if let Some(run) = artifact.runs.first() {
        let path = run.path.display();
        let _ = writeln!(
            text,
            "shallows run {path}/scenario.toml --out again\nshallows diff {path} again"
        );
    }
    text += "```

A simulated run is a pure function of its scenario and seed: it gives the same bytes with any number of threads. \
A live run measures real programs and gives other numbers each time.

## Runs

| run | seed | world | made by version |
|---|---|---|---|
";
    for run in &artifact.runs {
        let world = match run.world {
            World::Simulated => "simulated",
            World::Live => "live",
        };
        let version = run.version.as_deref().unwrap_or("not recorded");
        let (path, seed) = (run.path.display(), run.seed);
        let _ = writeln!(text, "| `{path}` | {seed} | {world} | {version} |");
    }
    text += "
## Files

| file | content |
|---|---|
| `<run>/scenario.toml`, `<run>/inputs/` | the scenario with every default written out, and the files that it reads |
| `<run>/summary.json`, `<run>/flows.*`, others | results; docs/results.md of Shallows describes every column |
| `run.sha256` | hashes of all files |
| `artifact.json` | the list of runs that `shallows artifact check` reads |
| `ro-crate-metadata.json` | the same as RO-Crate 1.1, for archives |
| `CHECKLIST.md` | what the bundle shows for each badge, and what its author still has to do |
";
    text
}

/// The badges of ACM's artifact review (version 1.1), with what the bundle shows for each.
pub(super) fn checklist(artifact: &Artifact) -> String {
    let simulated = artifact
        .runs
        .iter()
        .filter(|run| run.world == World::Simulated);
    let (simulated, all) = (simulated.count(), artifact.runs.len());
    let license = match &artifact.license {
        Some(license) => format!("- [x] The data have a license: {license}."),
        None => {
            "- [ ] The data have a license (`shallows artifact --license CC-BY-4.0 ...`).".into()
        }
    };
    format!(
        "# Badge checklist

Marked items follow from how the bundle is made; the others are for its author.

## Artifacts Available

- [ ] The bundle is in a public archive with a DOI, and the paper names it.
{license}
- [x] Metadata for archives: `ro-crate-metadata.json`, `CITATION.cff`.

## Artifacts Evaluated: Functional

- [x] Documented: `README.md` lists every run and every file.
- [x] Consistent and complete: each run has its scenario, its inputs and its results.
- [x] Exercisable: `shallows artifact check .` makes {simulated} of {all} runs again.
- [ ] A table maps each figure and claim of the paper to runs of the bundle.

## Artifacts Evaluated: Reusable

- [x] Scenarios are plain text with every default written out; any key can be changed with `--set`.
- [ ] The paper's own schemes, if any, are in the bundle as source code.

## Results Reproduced

- [ ] A person other than the author ran `shallows artifact check .` on another machine and it reported every run as equal.
"
    )
}
