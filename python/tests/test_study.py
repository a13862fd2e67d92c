"""Runs that are kept, and studies, searches and papers."""

import pytest

import shallows

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")


def test_a_scenario_runs_itself(tiny):
    scenario = shallows.Scenario(tiny)
    run = scenario.run(seed=3)
    assert run.flows.to_arrow().equals(shallows.run(tiny, seed=3).flows.to_arrow())
    assert run.fct("all")["mean"] == pytest.approx(run.flows["fct_us"].mean())
    assert run.fct()["p99"] == pytest.approx(run.metric("all.p99") * 1000)
    assert "50 flows" in repr(run)


def test_tables_have_columns(tiny):
    flows = shallows.run(tiny).flows
    assert flows["bytes"].sum() == 50 * 30_000
    with pytest.raises(KeyError, match="no column 'size'; there are: .*bytes"):
        flows["size"]


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_saved_run_opens_again(tiny, tmp_path, format):
    probes = {"queues": {"links": "*->h0", "interval": "10us"}}
    run = shallows.run({**tiny, "probes": probes})
    run.save(tmp_path / "run", format)
    again = shallows.open(tmp_path / "run")
    assert again.summary == run.summary
    assert again.scenario == run.scenario
    assert again.ports == run.ports
    assert again.metric("small.p99") == run.metric("small.p99")
    for name in ("flows", "queues"):
        assert again.table(name).to_arrow().equals(run.table(name).to_arrow())
    with pytest.raises(ValueError, match="copy that"):
        again.save(tmp_path / "other")


def test_saving_replaces_nothing_of_others(tiny, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RuntimeError, match="notes.txt"):
        shallows.run(tiny).save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(ValueError, match="parquet"):
        shallows.run(tiny).save(tmp_path / "run", "xlsx")


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises((RuntimeError, shallows.ScenarioError)):
        shallows.open(tmp_path)
    with pytest.raises((RuntimeError, shallows.ScenarioError), match="missing"):
        shallows.open(tmp_path / "missing")


def test_a_run_of_the_command_opens(tmp_path, command):
    import subprocess

    subprocess.run([command, "run", "incast", "--out", tmp_path / "run"], check=True, stdout=subprocess.DEVNULL)
    assert shallows.open(tmp_path / "run").summary == shallows.run("incast").summary


def test_a_study_is_kept_and_has_intervals(tmp_path):
    settings = {"workload.poisson.flows": 60}
    study = shallows.study("thresholds", tmp_path / "study", seeds=2, set=settings)
    points = study.points
    assert {"metric", "mean", "low", "high", "marking", "load"} <= set(points.columns)
    assert study.runs.num_rows == 3 * 3 * 2
    assert study._repr_svg_().startswith("<svg")
    assert {"reproduced", "not-reproduced", "undecided"} & {claim["verdict"] for claim in study.claims}
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "study" / "runs").rglob("*") if path.is_file()}
    shallows.study("thresholds", tmp_path / "study", seeds=2, set=settings)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_settings_of_a_study_may_be_tables(tmp_path):
    settings = {"workload.poisson.flows": 20, "transport.controller": {"dctcp": {"g": 0.125}}}
    assert len(shallows.study("thresholds", tmp_path, seeds=1, set=settings).points) > 0


def test_what_is_wrong_with_a_study_is_said(tmp_path):
    with pytest.raises(RuntimeError, match="quees"):
        shallows.study("thresholds", tmp_path, set={"ports.switch.quees": 3})


def test_a_figure_of_a_paper(tmp_path):
    outcomes = shallows.repro("mq-ecn/fig2", quick=True, seeds=1, out=tmp_path)
    assert "verdict" in str(outcomes)


def test_what_cannot_run_live_is_not_compared(tmp_path):
    with pytest.raises(RuntimeError, match="several paths between hosts"):
        shallows.compare("quickstart", out=tmp_path)


def test_a_published_simulator(tmp_path):
    [outcome] = shallows.validate("ear", runs=1, out=tmp_path)
    assert "ear" in str(outcome).lower()


def test_representations_say_something(tiny):
    scenario = shallows.Scenario(tiny)
    run = scenario.run()
    assert "'hosts': 4" in repr(scenario.topology)
    assert repr(run.flows).startswith("<shallows.Table of 50 rows: ") and "fct_us" in repr(run.flows)
    assert "small flows" in repr(run) and "us at p99" in repr(run)
    assert "bytes of SVG" in repr(run.figure())


def test_a_simulator_without_results_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="mq-ecn, ear, qjump"):
        shallows.validate("ns-3", runs=1, out=tmp_path)


def test_a_search(tmp_path):
    outcome = shallows.tune(
        "quickstart",
        {"ports.switch.marker.scheme.mq-ecn.threshold": "8pkts..40pkts:3"},
        minimize="small.p99",
        seeds=2,
        set={"workload.poisson.flows": 60},
        out=tmp_path,
    )
    assert outcome["sentence"]
