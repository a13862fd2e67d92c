//! The place of a panel or a claim among the axes of a study.

use std::collections::BTreeMap;

use super::Study;
use super::axis::Axis;
use super::config::shown;

/// The axes that a panel or a claim names, and those that it needs.
pub(super) struct Axes<'a> {
    pub(super) x: Option<&'a str>,
    pub(super) curves: Option<&'a str>,
    /// Points of other axes, by name.
    pub(super) at: &'a BTreeMap<String, toml::Value>,
    /// True if there may be an axis to the right.
    pub(super) wants_x: bool,
    /// True if there may be an axis of curves.
    pub(super) wants_curves: bool,
    /// Points of the axis of curves, by which it is found if it is not named.
    pub(super) points: &'a [String],
}

/// A name that leads nowhere, and the key that has it.
#[derive(Debug)]
pub(super) struct ViewError {
    pub(super) key: ViewKey,
    pub(super) problem: String,
}

/// A key of a panel or a claim.
#[derive(Debug)]
pub(super) enum ViewKey {
    X,
    Curves,
    /// The points that are compared.
    Of,
    /// The point on this axis.
    At(String),
    /// The whole of it: this axis is left open.
    Open {
        axis: String,
        first: String,
    },
}

/// The axes of a panel or a claim, by number.
#[derive(Debug)]
pub(super) struct View {
    pub(super) x: Option<usize>,
    pub(super) curves: Option<usize>,
    /// The point on each axis that is fixed, by id.
    fixed: Vec<Option<String>>,
}

impl View {
    /// Axes that are not named are the first open ones: a numeric one to the right, another one for
    /// the curves.
    pub(super) fn new(study: &Study, axes: &Axes<'_>) -> Result<Self, ViewError> {
        let declared = &study.declared;
        let mut fixed = vec![None; declared.len()];
        for (name, value) in axes.at {
            let key = || ViewKey::At(name.clone());
            let axis = find(declared, name).map_err(|problem| ViewError {
                key: key(),
                problem,
            })?;
            let point = point(&declared[axis], &shown(value));
            let point = point.map_err(|problem| ViewError {
                key: key(),
                problem,
            })?;
            fixed[axis] = Some(declared[axis].points[point].id.clone());
        }
        let named = |name: Option<&str>, key: fn() -> ViewKey| {
            let found = name.map(|name| find(declared, name)).transpose();
            found.map_err(|problem| ViewError {
                key: key(),
                problem,
            })
        };
        let mut curves = named(axes.curves, || ViewKey::Curves)?;
        if let (None, [first, ..]) = (curves, axes.points) {
            let has_all = |axis: &Axis| axes.points.iter().all(|name| axis.find(name).is_some());
            curves = declared.iter().position(has_all);
            if curves.is_none() {
                let problem = format!("no axis has a point {first:?}");
                let key = ViewKey::Of;
                return Err(ViewError { key, problem });
            }
        }
        let open: Vec<usize> = (0..declared.len())
            .filter(|&axis| declared[axis].points.len() > 1 && fixed[axis].is_none())
            .collect();
        let mut x = named(axes.x, || ViewKey::X)?;
        if x.is_none() && axes.wants_x {
            let is_free = |axis: &&usize| curves != Some(**axis) && declared[**axis].is_numeric();
            x = open.iter().find(is_free).copied();
        }
        if curves.is_none() && axes.wants_curves {
            // A single point is no choice, but has a label.
            let single = (0..declared.len()).filter(|&axis| fixed[axis].is_none());
            let mut all = open.iter().copied().chain(single);
            curves = all.find(|axis| x != Some(*axis));
        }
        let is_open = |axis: &&usize| x != Some(**axis) && curves != Some(**axis);
        if let Some(&axis) = open.iter().find(is_open) {
            let Axis { name, points, .. } = &declared[axis];
            let problem = format!("does not say where it is on the axis {name}");
            let (axis, first) = (name.clone(), points[0].id.clone());
            let key = ViewKey::Open { axis, first };
            return Err(ViewError { key, problem });
        }
        Ok(Self { x, curves, fixed })
    }

    /// The combination at a point of x and one of the curves, if it is run.
    pub(super) fn combination(&self, study: &Study, x: usize, curve: usize) -> Option<usize> {
        let mut points = Vec::new();
        for (index, axis) in study.axes.iter().enumerate() {
            points.push(match (&self.fixed[index], Some(index)) {
                (Some(id), _) => axis.find(id)?,
                (None, of) if of == self.x => x,
                (None, of) if of == self.curves => curve,
                (None, _) => 0,
            });
        }
        Some(study.combination(&points))
    }

    /// The point that is fixed on an axis, if it is run.
    pub(super) fn fixed(&self, study: &Study, axis: usize) -> Option<usize> {
        study.axes[axis].find(self.fixed[axis].as_ref()?)
    }

    /// The combination of a point of the curves, by name, at a number of x.
    pub(super) fn combination_named(&self, study: &Study, curve: &str, x: f64) -> Option<usize> {
        let curve = match self.curves {
            Some(curves) => study.axes[curves].find(curve)?,
            None => 0,
        };
        let x = match self.x {
            Some(axis) => study.axes[axis].numbers().position(|number| number == x)?,
            None => 0,
        };
        self.combination(study, x, curve)
    }
}

/// The axis with this name, or those that there are.
pub(super) fn find(axes: &[Axis], name: &str) -> Result<usize, String> {
    let found = axes.iter().position(|axis| axis.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
        format!("there is no axis {name:?}; there are: {}", names.join(", "))
    })
}

/// The point of an axis with this id or label, or those that there are.
pub(super) fn point(axis: &Axis, name: &str) -> Result<usize, String> {
    axis.find(name).ok_or_else(|| {
        let points: Vec<&str> = axis.points.iter().map(|point| &*point.id).collect();
        let (axis, points) = (&axis.name, points.join(", "));
        format!("{axis} has no point {name:?}; it has: {points}")
    })
}
