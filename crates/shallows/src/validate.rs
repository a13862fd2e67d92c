//! `shallows validate`.

use std::fs;

use anyhow::Context as _;
use indicatif::ProgressBar;
use shallows_results::figure::Words;
use shallows_results::write_text;
use shallows_study::validate;

use crate::cli::ValidateArgs;
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;

pub(crate) fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    let interrupted = watch_for_ctrl_c()?;
    let bar = ProgressBar::new(validate::runs_in_all(args.runs).into());
    let validation = validate::mq_ecn(args.runs, &interrupted, &mut |done| {
        bar.set_position(done.into());
    })?;
    bar.finish_and_clear();
    let out = &args.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let json = serde_json::to_string_pretty(&validation).context("results are plain data")? + "\n";
    write_text(&out.join("validate-mq-ecn.json"), &json)?;
    let figure = validation.figure();
    figure.write(out, "validate-mq-ecn", &Words::default())?;
    if args.json {
        return Ok(output::print(&json)?);
    }
    let place = out.join("validate-mq-ecn.svg");
    Ok(output::print(&format!(
        "{validation}figure: {}\n",
        place.display()
    ))?)
}
