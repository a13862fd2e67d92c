//! `--vary`: studies without a file.

use std::path::Path;

use shallows_run::scenario::Scenario;
use shallows_run::{Diagnostic, Failure};

use super::axis::Axis;
use super::config::{AxisConfig, NamedMetric, Seeds, StudyConfig, sets_seed};
use super::{MOST_RUNS, OnTop, ScenarioFile, Study};
use crate::measured::Keep;

impl Study {
    /// A scenario with some keys varied, as `--vary KEY=A,B,C` says, each with the seeds from 1 to
    /// `on_top.seeds`, or else with the scenario's own.
    pub fn vary(
        scenario: &Path,
        vary: &[String],
        on_top: &OnTop,
        metrics: &[String],
    ) -> Result<Self, Failure> {
        let OnTop {
            set,
            seeds,
            registry,
            ..
        } = on_top;
        let wrong = |problem: String| Failure::Scenario(Diagnostic::new(problem));
        let seeds = match *seeds {
            None => vec![Scenario::read_with(scenario, set, registry)?.config.seed],
            Some(_) if set.iter().any(|one| sets_seed(&one.assignment)) => {
                return Err(wrong(
                    "--seeds N are from 1 to N; leave out the seed".to_owned(),
                ));
            }
            Some(count) => {
                let seeds = Seeds::Count(count).list(MOST_RUNS);
                seeds.map_err(|problem| wrong(format!("--seeds: {problem}")))?
            }
        };
        let mut axes: Vec<Axis> = Vec::new();
        for one in vary {
            let mut axis = axis_of("--vary", one).map_err(wrong)?;
            if axes.iter().any(|earlier| earlier.name == axis.name) {
                let key = one.split('=').next().unwrap_or(one);
                key.trim().clone_into(&mut axis.name);
            }
            if axes.iter().any(|earlier| earlier.name == axis.name) {
                return Err(wrong(format!("--vary {one}: the key is varied twice")));
            }
            for point in &mut axis.points {
                point.place = format!("--vary {one}");
            }
            axes.push(axis);
        }
        let metrics = metrics
            .iter()
            .map(|name| NamedMetric::try_from(name.clone()));
        let metrics: Result<Vec<NamedMetric>, String> = metrics.collect();
        let stem = scenario.file_stem().unwrap_or_default().to_string_lossy();
        // Another `--vary` does not replace its results.
        let varied: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
        let is_plain = |c: char| c.is_alphanumeric() || ['-', '_', '.'].contains(&c);
        let varied = varied.join("-").replace(|c| !is_plain(c), "-");
        let study = Self {
            name: format!("{stem}-vary-{varied}"),
            config: StudyConfig {
                scenario: scenario.to_owned(),
                keep: Keep::All,
                metrics: metrics.map_err(wrong)?,
                ..StudyConfig::default()
            },
            scenario: ScenarioFile::Path(scenario.to_owned()),
            set: set.clone(),
            on_top: Vec::new(),
            commanded: on_top.commanded(),
            size: on_top.size,
            declared: axes.clone(),
            axes,
            seeds,
            text: String::new(),
            registry: registry.clone(),
        };
        if study.combinations().saturating_mul(study.seeds.len()) > MOST_RUNS {
            return Err(wrong(format!("--vary: more than {MOST_RUNS} runs")));
        }
        Ok(study)
    }
}

/// The axis that `--vary KEY=A,B,C`, or an option like it, describes.
pub(crate) fn axis_of(option: &str, vary: &str) -> Result<Axis, String> {
    let Some((key, values)) = vary.split_once('=') else {
        return Err(format!(
            "{option} {vary}: write KEY=A,B,C such as workload.poisson.load=0.3,0.6,0.9"
        ));
    };
    let key = key.trim();
    let values: Vec<toml::Value> = split(values).into_iter().map(value).collect();
    let config = AxisConfig {
        key: Some(key.to_owned()),
        values,
        ..Default::default()
    };
    Axis::new(&config).map_err(|error| format!("{option} {vary}: {}", error.problem))
}

/// As `--set` reads it: TOML, or else a text.
fn value(text: &str) -> toml::Value {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// The parts between commas that are in no brackets and no quotes.
fn split(values: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_u32, false);
    for (at, c) in values.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                parts.push(values[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(values[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_outside_of_brackets_and_quotes() {
        assert_eq!(split("1,2, 3"), ["1", "2", "3"]);
        assert_eq!(split("none,{ red = { low = 1, high = 2 } },[1,2]").len(), 3);
        assert_eq!(split("\"a,b\",c"), ["\"a,b\"", "c"]);
    }
}
