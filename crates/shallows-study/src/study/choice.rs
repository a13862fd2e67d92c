//! The part of a study that a command asks for: its size, its points, its settings on top.

use shallows_results::report::Size;
use shallows_run::scenario::{Document, Setting};
use shallows_run::{Diagnostic, Failure};

use super::axis::{Axis, Point};
use super::config::{SizeConfig, StudyConfig, shown};
use super::{OnTop, view};

/// The table of the wanted size; an empty one if the study has none.
pub(super) fn size_of(
    document: &Document<StudyConfig>,
    wanted: Option<Size>,
) -> Result<&SizeConfig, Diagnostic> {
    static WHOLE: SizeConfig = SizeConfig::WHOLE;
    match document.content.size(wanted.unwrap_or(Size::Full)) {
        Some(size) => Ok(size),
        None if wanted == Some(Size::Quick) => {
            Err(document.error("scenario", "the study has no [quick] table"))
        }
        None => Ok(&WHOLE),
    }
}

/// The axes with the points that are run.
pub(super) fn chosen(
    document: &Document<StudyConfig>,
    name: &str,
    declared: &[Axis],
    size: &SizeConfig,
    on_top: &OnTop,
) -> Result<Vec<Axis>, Failure> {
    let mut axes = declared.to_vec();
    let config = &document.content;
    let table = table_of(config, on_top.size);
    for (of, values) in &size.at {
        let wrong = |problem| document.error(&format!("{table}.at.{of}"), problem);
        let axis = view::find(declared, of).map_err(wrong)?;
        let points = values.iter();
        let points = points.map(|value| view::point(&declared[axis], &shown(value)));
        let points = points
            .collect::<Result<Vec<usize>, String>>()
            .map_err(wrong)?;
        let all = (0..).zip(&declared[axis].points);
        let kept = all.filter(|(index, _)| points.contains(index));
        axes[axis].points = kept.map(|(_, point)| point.clone()).collect();
    }
    let x = declared.iter().position(Axis::is_numeric);
    if let Some(x) = x.filter(|_| !on_top.at.is_empty()) {
        let is_wanted = |point: &&Point| point.number.is_some_and(|x| on_top.at.contains(&x));
        let points = declared[x].points.iter().filter(is_wanted);
        axes[x].points = points.cloned().collect();
        if axes[x].points.is_empty() {
            let values: Vec<&str> = declared[x].points.iter().map(|one| &*one.label).collect();
            let values = values.join(", ");
            let problem =
                anyhow::anyhow!("{name} has no point at these values of x; it has {values}");
            return Err(problem.into());
        }
    }
    if let Some(live) = config
        .live
        .as_ref()
        .filter(|_| on_top.size == Some(Size::Live))
    {
        for id in &live.without {
            if !declared.iter().any(|axis| axis.find(id).is_some()) {
                let problem = format!("no axis has a point {id:?}");
                return Err(document.error("live.without", problem).into());
            }
            for axis in &mut axes {
                axis.points.retain(|point| point.id != *id);
            }
        }
    }
    Ok(axes)
}

/// The name of the table of a size.
pub(super) fn table_of(config: &StudyConfig, size: Option<Size>) -> &'static str {
    match size.unwrap_or(Size::Full) {
        Size::Live if config.live.is_some() => "live",
        Size::Quick | Size::Live => "quick",
        Size::Full => "full",
    }
}

/// A setting of a command and the point that it is for: `mq-ecn:key=value` is for the one with that
/// id, and `key=value` for all.
pub(super) fn for_point(setting: &Setting, axes: &[Axis]) -> (Option<String>, Setting) {
    let is_point = |id: &str| {
        let mut points = axes.iter().flat_map(|axis| &axis.points);
        points.any(|point| point.id == id)
    };
    match setting.assignment.split_once(':') {
        Some((id, rest)) if is_point(id) => {
            let (shown, assignment) = (setting.shown.clone(), rest.to_owned());
            (Some(id.to_owned()), Setting { shown, assignment })
        }
        _ => (None, setting.clone()),
    }
}
