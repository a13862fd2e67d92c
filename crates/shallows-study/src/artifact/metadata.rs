//! The description of a bundle as RO-Crate 1.1.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{Artifact, Run, SCENARIO, World, regular_files};

const DAY: u64 = 86_400;

/// The metadata of a bundle whose other files are in `place`.
pub(super) fn ro_crate(artifact: &Artifact, place: &Path) -> anyhow::Result<Value> {
    let files = regular_files(place)?;
    let modified = |run: &Run| fs::metadata(place.join(&run.path).join(SCENARIO))?.modified();
    let newest = artifact
        .runs
        .iter()
        .filter_map(|run| modified(run).ok())
        .max();
    let mut parts = Vec::new();
    let mut graph = Vec::new();
    for file in &files {
        let id = file.display().to_string();
        parts.push(json!({ "@id": id }));
        let size = fs::metadata(place.join(file))?.len().to_string();
        graph.push(json!({
            "@id": id, "@type": "File", "name": id, "contentSize": size,
            "encodingFormat": media_type(file),
        }));
    }
    let mut root = json!({
        "@id": "./", "@type": "Dataset", "name": artifact.title,
        "description": format!("{} runs of Shallows {}", artifact.runs.len(), artifact.version),
        "datePublished": date(newest.unwrap_or(UNIX_EPOCH)),
        "hasPart": parts,
        "mentions": artifact.runs.iter().map(|run| json!({ "@id": action_id(run) })).collect::<Vec<_>>(),
    });
    if let Some(license) = &artifact.license {
        root["license"] = json!(license);
    }
    let mut all = vec![
        json!({
            "@id": "ro-crate-metadata.json", "@type": "CreativeWork",
            "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" }, "about": { "@id": "./" },
        }),
        root,
        json!({
            "@id": "#shallows", "@type": "SoftwareApplication", "name": "Shallows",
            "version": artifact.version, "softwareVersion": artifact.build,
        }),
    ];
    all.extend(graph);
    all.extend(artifact.runs.iter().map(|run| action(run, &files)));
    Ok(json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": all }))
}

/// A run as the action that made its results out of its scenario and inputs.
fn action(run: &Run, files: &[std::path::PathBuf]) -> Value {
    let of_run = files.iter().filter(|file| file.starts_with(&run.path));
    let is_input = |file: &&std::path::PathBuf| {
        let within = file.strip_prefix(&run.path).expect("it is of the run");
        within == Path::new(SCENARIO) || within.starts_with("inputs")
    };
    let (inputs, results): (Vec<_>, Vec<_>) = of_run.partition(is_input);
    let ids = |files: Vec<&std::path::PathBuf>| -> Vec<Value> {
        let id = |file: &std::path::PathBuf| json!({ "@id": file.display().to_string() });
        files.into_iter().map(id).collect()
    };
    let world = match run.world {
        World::Simulated => "simulation",
        World::Live => "live run",
    };
    json!({
        "@id": action_id(run), "@type": "CreateAction",
        "name": format!("{world} of {} with seed {}", run.path.display(), run.seed),
        "instrument": { "@id": "#shallows" }, "object": ids(inputs), "result": ids(results),
    })
}

fn action_id(run: &Run) -> String {
    format!("#run-{}", run.path.display())
}

fn media_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => "application/json",
        Some("toml") => "application/toml",
        Some("csv") => "text/csv",
        Some("parquet") => "application/vnd.apache.parquet",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("md") => "text/markdown",
        Some("sha256" | "cff") => "text/plain",
        _ => "application/octet-stream",
    }
}

/// The day of a time in UTC, as `2026-11-18`.
pub(crate) fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    // Days since 1 March of year 0, in eras of 400 years, so that leap days end a year.
    let days = seconds / DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = match month {
        0..=9 => (month + 3, year),
        _ => (month - 9, year + 1),
    };
    format!("{:04}-{month:02}-{day_of_month:02}", era * 400 + year)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_by_hand() {
        let at = |days: u64| date(UNIX_EPOCH + Duration::from_secs(days * DAY + 5));
        assert_eq!(at(0), "1970-01-01");
        assert_eq!(at(59), "1970-03-01");
        // 2000 was a leap year: 30 years with 7 leap days, January and 29 days.
        assert_eq!(at(30 * 365 + 7 + 31 + 28), "2000-02-29");
        assert_eq!(at(20_775), "2026-11-18");
    }
}
