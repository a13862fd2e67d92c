//! Verdicts on claims, and their words.

use std::fmt::{self, Display, Formatter, Write as _};

use serde::{Deserialize, Serialize};

/// Verdict on our value compared with the paper's. The rules are in `docs/verdicts.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As the paper has it.
    Reproduced,
    /// The effect is there with another size.
    SameDirection,
    /// The effect is not there.
    NotReproduced,
    /// Seeds disagree, or a run was too short to tell.
    Undecided,
    /// This size of the figure has no runs for it, or one of the runs has no value.
    NotMeasured,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Self; 5] = [
        Self::Reproduced,
        Self::SameDirection,
        Self::NotReproduced,
        Self::Undecided,
        Self::NotMeasured,
    ];
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
            Self::NotMeasured => "not measured",
        })
    }
}

/// A caveat of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// A parameter that the paper does not give was chosen with this value in view.
    Fitted,
    /// The paper has words, such as "similar"; the number is ours.
    OurBound,
    /// The paper compares with a scheme that it describes in a sentence; what runs is our reading.
    OurReading,
}

impl Display for Mark {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fitted => "fitted",
            Self::OurBound => "our bound",
            Self::OurReading => "our reading",
        })
    }
}

/// A verdict as a table has it, such as "undecided: reproduced or same direction (our bound)".
pub fn with_note_and_marks(verdict: Verdict, note: Option<&str>, marks: &[Mark]) -> String {
    let mut text = verdict.to_string();
    if let Some(note) = note {
        let _ = write!(text, ": {note}");
    }
    if !marks.is_empty() {
        let marks: Vec<String> = marks.iter().map(ToString::to_string).collect();
        let _ = write!(text, " ({})", marks.join(", "));
    }
    text
}

/// Verdicts counted in words, such as "7 reproduced (2 of them marked), 1 undecided"; with each
/// verdict comes whether it is marked.
pub fn counts(verdicts: impl IntoIterator<Item = (Verdict, bool)>) -> String {
    let verdicts: Vec<(Verdict, bool)> = verdicts.into_iter().collect();
    let count = |wanted: (Verdict, bool)| verdicts.iter().filter(|of| **of == wanted).count();
    let words = Verdict::ALL.into_iter().filter_map(|verdict| {
        let (plain, marked) = (count((verdict, false)), count((verdict, true)));
        match (plain + marked, verdict) {
            (0, _) => None,
            (all, Verdict::Reproduced) if marked > 0 => {
                Some(format!("{all} {verdict} ({marked} of them marked)"))
            }
            (all, _) => Some(format!("{all} {verdict}")),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}
