//! `shallows sonic check`.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde_json::json;
use shallows_core::host::qjump::mark_of;
use shallows_core::units::{Rate, Time};
use shallows_operate::sonic::{self, Context, Finding, Severity};
use shallows_run::Scenario;

use super::{base_rtt, read};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The configuration, a config_db.json.
    #[arg(value_name = "CONFIG_DB")]
    config: PathBuf,
    /// Base round-trip time of the fabric, such as 20us, for depths as multiples of C x RTT.
    #[arg(long, value_name = "TIME")]
    rtt: Option<Time>,
    /// Take the round-trip time from a scenario, and QJUMP's levels if it has them.
    #[arg(long, value_name = "FILE", conflicts_with = "rtt")]
    scenario: Option<PathBuf>,
    /// Speed of ports whose speed the file does not give, such as 100Gbps.
    #[arg(long, value_name = "RATE")]
    speed: Option<Rate>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

pub(super) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let db = read(&args.config)?;
    let context = context(args)?;
    let findings = sonic::check(&db, &context);
    let text = if args.json {
        json_text(&args.config, &context, &findings)?
    } else {
        text(&args.config, &context, &findings)
    };
    output::print(&text)?;
    match count(&findings, Severity::Error) {
        0 => Ok(()),
        errors => {
            let noun = if errors == 1 { "error" } else { "errors" };
            let file = args.config.display();
            Err(Failure::Run(anyhow!("{errors} {noun} in {file}")))
        }
    }
}

fn context(args: &CheckArgs) -> Result<Context, Failure> {
    let mut context = Context {
        rtt: args.rtt,
        speed: args.speed,
        qjump: Vec::new(),
    };
    if let Some(path) = &args.scenario {
        let scenario = Scenario::load(path)?;
        context.rtt = Some(base_rtt(&scenario)?);
        if let Some(qjump) = &scenario.config.hosts.qjump {
            let limits = qjump.limits(&scenario.fabric()?);
            let limits = limits.map_err(|error| scenario.error_in("hosts.qjump", &error))?;
            context.qjump = (0..limits.levels.len())
                .map(|level| mark_of(level as u8))
                .collect();
        }
    }
    Ok(context)
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    let same = findings
        .iter()
        .filter(|finding| finding.severity == severity);
    same.count()
}

fn text(config: &std::path::Path, context: &Context, findings: &[Finding]) -> String {
    let mut text = format!("{}", config.display());
    if let Some(rtt) = context.rtt {
        let _ = write!(text, ", with a round-trip time of {rtt}");
    }
    text += "\n\n";
    for (number, finding) in (1..).zip(findings) {
        let (severity, code) = (finding.severity.word(), finding.rule.code());
        let _ = write!(text, "{number}. {severity} {code}: {}", finding.place);
        if let Some(line) = finding.line {
            let _ = write!(text, " (line {line})");
        }
        let _ = writeln!(text, "\n   {}.", finding.says);
        if let Some(fix) = &finding.fix {
            let _ = writeln!(text, "   fix: {fix}");
        }
    }
    let counted = |severity: Severity| {
        let n = count(findings, severity);
        let plural = if n == 1 { "" } else { "s" };
        format!("{n} {}{plural}", severity.word())
    };
    let [errors, warnings, notes] =
        [Severity::Error, Severity::Warning, Severity::Note].map(counted);
    let _ = writeln!(text, "\n{errors}, {warnings}, {notes}");
    text
}

fn json_text(
    config: &std::path::Path,
    context: &Context,
    findings: &[Finding],
) -> Result<String, Failure> {
    let finding = |(number, finding): (usize, &Finding)| {
        json!({
            "number": number,
            "rule": finding.rule.code(),
            "severity": finding.severity,
            "table": finding.place.table,
            "key": finding.place.key,
            "field": finding.place.field,
            "line": finding.line,
            "says": finding.says,
            "fix": finding.fix,
        })
    };
    let value = json!({
        "file": config.display().to_string(),
        "rtt": context.rtt.map(|rtt| rtt.to_string()),
        "findings": (1..).zip(findings).map(finding).collect::<Vec<_>>(),
        "errors": count(findings, Severity::Error),
        "warnings": count(findings, Severity::Warning),
        "notes": count(findings, Severity::Note),
    });
    let text = serde_json::to_string_pretty(&value).map_err(anyhow::Error::from)?;
    Ok(text + "\n")
}
