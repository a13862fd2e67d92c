//! `shallows plot`: figures of a run or a sweep.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use shallows_core::registry::Registry;
use shallows_results::figure::{Look, Width};
use shallows_run::Interrupt;
use shallows_study::plot::{RunPlot, SweepPlot, plot_run, plot_sweep};

use crate::failure::{Failure, check_results};
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::progress::ProgressLine;

#[derive(Debug, Args)]
pub(crate) struct PlotArgs {
    /// Directory that `shallows run` or `shallows sweep` wrote.
    #[arg(value_name = "RESULTS")]
    results: PathBuf,
    /// Of a run: queues of a port, by the name of its link, with their marking thresholds.
    #[arg(long, value_name = "LINK")]
    port: Option<String>,
    /// Of a run: congestion windows of flows, by their numbers.
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        conflicts_with = "port"
    )]
    flows: Vec<u32>,
    /// Of a sweep: the metric on the y axis, such as small.p99.
    #[arg(long, value_name = "METRIC", requires = "x", conflicts_with_all = ["port", "flows"])]
    metric: Option<String>,
    /// Of a sweep: the axis to the right.
    #[arg(long, value_name = "AXIS", requires = "metric")]
    x: Option<String>,
    /// Of a sweep: the axis with one curve per point.
    #[arg(long, value_name = "AXIS", requires = "metric")]
    curves: Option<String>,
    /// Of a sweep: a logarithmic y axis.
    #[arg(long, requires = "metric")]
    log: bool,
    /// Directory of the figure (default: plots in RESULTS).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    look: LookArgs,
}

/// Options of every figure.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LookArgs {
    /// Width of figures: of a screen, or of one or two columns of a paper.
    #[arg(long, value_enum, value_name = "WIDTH", default_value_t = FigureWidth::Screen)]
    pub(crate) width: FigureWidth,
    /// Leave out title and note, for a figure that has a caption.
    #[arg(long)]
    pub(crate) no_title: bool,
}

impl LookArgs {
    pub(crate) fn look(self) -> Look {
        Look {
            width: self.width.width(),
            no_title: self.no_title,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FigureWidth {
    #[default]
    Screen,
    OneColumn,
    TwoColumns,
}

impl FigureWidth {
    pub(crate) fn width(self) -> Width {
        match self {
            Self::Screen => Width::Screen,
            Self::OneColumn => Width::OneColumn,
            Self::TwoColumns => Width::TwoColumns,
        }
    }
}

pub(crate) fn plot(args: &PlotArgs, registry: &Registry) -> Result<(), Failure> {
    check_results(&args.results)?;
    let is_sweep = args.results.join("runs.parquet").is_file();
    let (figure, words) = match (&args.metric, &args.x) {
        (Some(metric), Some(x)) => {
            let asked = SweepPlot {
                metric: metric.clone(),
                x: x.clone(),
                curves: args.curves.clone(),
                logarithmic: args.log,
            };
            plot_sweep(&args.results, &asked)?
        }
        _ if is_sweep => {
            let problem = "a sweep needs --metric and --x, such as --metric small.p99 --x load";
            return Err(anyhow::anyhow!(problem).into());
        }
        _ => of_run(args, registry)?,
    };
    let words = args.look.look().applied(words);
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| args.results.join("plots"));
    std::fs::create_dir_all(&out)
        .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", out.display()))?;
    let files = figure.write(&out, &figure.name, &words)?;
    let files = files.iter().map(|path| path.display().to_string());
    let files = files.collect::<Vec<_>>().join(" ");
    output::print(&format!("{files}\n")).map_err(Failure::from)
}

fn of_run(
    args: &PlotArgs,
    registry: &Registry,
) -> Result<
    (
        shallows_results::figure::Figure,
        shallows_results::figure::Words,
    ),
    Failure,
> {
    let interrupted = watch_for_ctrl_c()?;
    let asked = match (&args.port, &args.flows[..]) {
        (Some(port), _) => RunPlot::Port(port.clone()),
        (None, []) => RunPlot::Overview,
        (None, flows) => RunPlot::Flows(flows.to_vec()),
    };
    let directory: &Path = &args.results;
    let mut line = ProgressLine::new(0, None);
    let followed = (Interrupt::Flag(&interrupted), &mut line as _);
    let figure = plot_run(directory, &asked, registry, followed);
    line.clear();
    figure
}
