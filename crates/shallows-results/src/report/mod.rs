//! A reproduction as a page: figures, claims with verdicts, parameters, deviations.
//!
//! The page is one file that fetches nothing and runs no script. Equal input gives equal bytes.

mod page;
mod verdict;

use std::fmt::{self, Display, Formatter, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use verdict::{Mark, Verdict, counts, with_note_and_marks};

use crate::figure::{Figure, Look, Words};
use crate::{ResultsError, read_text, write_text};

/// Outcome of a paper's reproduction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// The paper.
    pub paper: Paper,
    /// Its figures, in its order.
    pub figures: Vec<FigureOutcome>,
    /// Known differences from the paper.
    pub deviations: Vec<Deviation>,
}

/// A paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Paper {
    /// Name in commands, such as `mq-ecn`.
    #[serde(default)]
    pub id: String,
    /// Its title.
    pub title: String,
    /// Authors of the paper.
    pub authors: String,
    /// Venue and year.
    pub venue: String,
    /// A sentence or two: what it is about.
    pub about: String,
}

/// A place where we knowingly differ from the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// Section of the paper.
    pub section: String,
    /// Sentence of the paper.
    pub quote: String,
    /// Our choice.
    pub ours: String,
    /// Reason for it.
    pub reason: String,
}

/// Outcome of one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureOutcome {
    /// Name in commands, such as `fig9`.
    pub id: String,
    /// Subject of the figure, in our words.
    pub title: String,
    /// The paper's caption.
    pub caption: String,
    /// Section of the paper that has it.
    pub section: String,
    /// Note for readers on our version of it.
    pub note: Option<String>,
    /// Scaled down or as large as the paper's.
    pub size: Size,
    /// Values of the x axis that were run, if not all of this size.
    #[serde(default)]
    pub only_at: Option<String>,
    /// Further options of the command, besides figure and size.
    #[serde(default)]
    pub options: String,
    /// Version of the program.
    pub version: String,
    /// Runs behind each point.
    pub seeds: u64,
    /// Runs behind the figure.
    pub runs: usize,
    /// The drawing and its data.
    pub figure: Figure,
    /// The paper's claims about it.
    pub claims: Vec<ClaimOutcome>,
    /// Curves: a label and the settings behind it.
    pub variants: Vec<(String, Vec<String>)>,
    /// The settings that all its runs have on top of the scenario.
    pub settings: Vec<String>,
    /// The scenario that all its runs start from.
    pub scenario: String,
    /// Its live runs, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveRuns>,
}

/// Live runs of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LiveRuns {
    /// Rates were multiplied by it and times divided; what is shown is multiplied back.
    pub scale: f64,
    /// Number of runs.
    pub runs: usize,
    /// Share of the frames that the switch sent too late, in the worst run.
    pub late_share: f64,
    /// 99 of 100 frames were at most this late, in the worst run.
    pub late_p99_us: f64,
    /// Share of CPU time that other virtual machines took, in the worst run.
    pub steal: Option<f64>,
}

impl Display for LiveRuns {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "live at {} of the rates, {} runs; in the worst of them {:.3}% of the frames were late \
             by more than 100 us, 99% at most {:.0} us",
            self.scale,
            self.runs,
            100.0 * self.late_share,
            self.late_p99_us
        )?;
        match self.steal {
            Some(steal) => write!(f, ", and {:.2}% of the CPU time was stolen", 100.0 * steal),
            None => Ok(()),
        }
    }
}

/// A claim's value on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveValue {
    /// With its unit.
    pub ours: String,
    /// Range over the seeds, where there are several.
    pub spread: Option<String>,
    /// As a number, or two where the paper gives a range.
    #[serde(deserialize_with = "crate::number::list")]
    pub values: Vec<f64>,
    /// Verdict on the comparison with the paper.
    pub verdict: Verdict,
    /// Addition to the verdict: the two verdicts between which it is undecided, or what is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl LiveValue {
    /// The verdict with its note.
    pub fn verdict_text(&self) -> String {
        with_note_and_marks(self.verdict, self.note.as_deref(), &[])
    }
}

/// Size of a reproduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// Fewer flows, loads and hosts: minutes, and no more than the trend.
    Quick,
    /// As large as the paper's.
    Full,
    /// The size that a machine can run live.
    Live,
}

/// Outcome of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimOutcome {
    /// Unique in its figure.
    pub id: String,
    /// The paper's sentence.
    pub quote: String,
    /// Quantity compared, in a few words.
    pub what: String,
    /// The paper's value, with its unit.
    pub paper: String,
    /// Ours.
    pub ours: String,
    /// Range of our value over the seeds, where there are several.
    pub spread: Option<String>,
    /// Ours as a number, or two where the paper gives a range; the least that it can be where a run
    /// was too short to tell.
    #[serde(deserialize_with = "crate::number::list")]
    pub values: Vec<f64>,
    /// The compared values behind it, by variant, x and seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
    /// Verdict on the comparison.
    pub verdict: Verdict,
    /// Addition to the verdict: the two verdicts between which it is undecided, or what is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Caveats of the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Value of the authors' own simulator, where it has been run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authors_code: Option<String>,
    /// The reason why ours differs, where that was found out.
    pub explanation: Option<String>,
    /// The same on a machine, where it was run on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveValue>,
}

impl FigureOutcome {
    /// Words around the figure where it is shown without a page.
    fn words(&self) -> Words {
        let seeds = match self.seeds {
            1 => "One seed".to_owned(),
            seeds => format!("Means over {seeds} seeds, bars are 95% confidence intervals"),
        };
        Words {
            title: self.title.clone(),
            note: format!("{seeds}; {} size.", self.size),
            ..Words::default()
        }
    }
}

impl ClaimOutcome {
    /// The verdict with its note and marks.
    pub fn verdict_text(&self) -> String {
        with_note_and_marks(self.verdict, self.note.as_deref(), &self.marks)
    }
}

/// A compared value at one x.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The variant.
    pub of: String,
    /// The place on the x axis.
    pub x: f64,
    /// One value for each seed.
    #[serde(deserialize_with = "crate::number::list")]
    pub seeds: Vec<f64>,
}

impl Display for Size {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Live => "live",
        })
    }
}

/// The reason why a report could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// There is nothing to report on.
    #[error(
        "there is no reproduction in {}; make one with: shallows repro mq-ecn --quick --out {}",
        .0.display(), .0.display()
    )]
    Nothing(PathBuf),
    /// A file of the reproduction is not readable.
    #[error("cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The page's own template is wrong.
    #[error("the page cannot be made: {0}")]
    Template(#[from] minijinja::Error),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] ResultsError),
}

impl Reproduction {
    /// The name of the file that a reproduction is kept in, in its directory.
    pub fn file(paper: &str) -> String {
        format!("{paper}.json")
    }

    /// Writes the reproduction so that [`read_all`] finds it.
    pub fn write(&self, directory: &Path) -> Result<(), ReportError> {
        let path = directory.join(Self::file(&self.paper.id));
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        Ok(write_text(&path, &json)?)
    }

    /// Reads one file.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let unreadable = |problem: String| ReportError::Unreadable {
            path: path.to_owned(),
            problem,
        };
        let text = read_text(path).map_err(|error| unreadable(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
    }

    /// Number of claims with each verdict.
    pub fn tally(&self) -> [(Verdict, usize); 5] {
        let claims = || self.figures.iter().flat_map(|figure| &figure.claims);
        Verdict::ALL.map(|verdict| {
            let count = claims().filter(|claim| claim.verdict == verdict).count();
            (verdict, count)
        })
    }

    /// The tally in words.
    pub fn counts(&self) -> String {
        let claims = self.figures.iter().flat_map(|figure| &figure.claims);
        counts(claims.map(|claim| (claim.verdict, !claim.marks.is_empty())))
    }

    /// The claims as a table in Markdown.
    pub fn to_markdown(&self) -> String {
        // Few papers have published a simulator that still runs.
        let mut claims = self.figures.iter().flat_map(|figure| &figure.claims);
        let with_code = claims.any(|claim| claim.authors_code.is_some());
        let (head, rule) = if with_code {
            (" authors' code |", "---|")
        } else {
            ("", "")
        };
        let mut table = format!(
            "| figure | claim | paper |{head} ours | over seeds | verdict |\n\
             |---|---|---|{rule}---|---|---|\n"
        );
        for figure in self.figures.iter().filter(|figure| figure.live.is_none()) {
            for claim in &figure.claims {
                let ClaimOutcome {
                    what, paper, ours, ..
                } = claim;
                let verdict = claim.verdict_text();
                let spread = claim.spread.as_deref().unwrap_or("");
                let id = &figure.id;
                let code = match &claim.authors_code {
                    Some(code) => format!(" {code} |"),
                    None if with_code => " |".to_owned(),
                    None => String::new(),
                };
                let _ = writeln!(
                    table,
                    "| {id} | {what} | {paper} |{code} {ours} | {spread} | {verdict} |"
                );
            }
        }
        let mut live = self.figures.iter().filter(|figure| figure.live.is_some());
        if live.clone().next().is_some() {
            table += "\n| figure | claim | paper | simulated | verdict | live | verdict |\n\
                      |---|---|---|---|---|---|---|\n";
        }
        for (figure, claim) in live.by_ref().flat_map(|figure| {
            let claims = figure.claims.iter();
            claims.map(move |claim| (&figure.id, claim))
        }) {
            let ClaimOutcome {
                what, paper, ours, ..
            } = claim;
            if let Some(live) = &claim.live {
                let verdict = claim.verdict_text();
                let (value, judged) = (&live.ours, live.verdict_text());
                let _ = writeln!(
                    table,
                    "| {figure} | {what} | {paper} | {ours} | {verdict} | {value} | {judged} |"
                );
            }
        }
        let _ = write!(table, "\n{}.\n", self.counts());
        for figure in &self.figures {
            if let Some(only_at) = &figure.only_at {
                let _ = write!(table, "\n{}: only {only_at}.\n", figure.id);
            }
        }
        table
    }
}

/// The reproductions in a directory, by the name of their paper.
pub fn read_all(directory: &Path) -> Result<Vec<Reproduction>, ReportError> {
    let nothing = || ReportError::Nothing(directory.to_owned());
    let entries = fs::read_dir(directory).map_err(|_| nothing())?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    paths.sort_unstable();
    if paths.is_empty() {
        return Err(nothing());
    }
    paths.iter().map(|path| Reproduction::read(path)).collect()
}

/// Writes `report.html`, and beside it the files of each figure, and the
/// claims as `<paper>-claims.md`. Answers with the path of the page.
pub fn write(
    directory: &Path,
    reproductions: &[Reproduction],
    look: Look,
) -> Result<PathBuf, ReportError> {
    let figures = directory.join("figures");
    fs::create_dir_all(&figures).map_err(|error| ReportError::Unreadable {
        path: figures.clone(),
        problem: error.to_string(),
    })?;
    for reproduction in reproductions {
        for outcome in &reproduction.figures {
            let figure = &outcome.figure;
            let words = look.applied(outcome.words());
            figure.write(&figures, &figure.name, &words)?;
        }
        let claims = directory.join(format!("{}-claims.md", reproduction.paper.id));
        write_text(&claims, &reproduction.to_markdown())?;
    }
    let page = directory.join("report.html");
    write_text(&page, &page::render(reproductions)?)?;
    Ok(page)
}
