import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import shallows

pandas = pytest.importorskip("pandas")

AXES = {
    "workload.poisson.load": [0.3, 0.6],
    "ports.switch.marker.scheme": [{"per-queue": {"threshold": "5pkts"}}, "none"],
}


def test_every_combination_and_seed_is_a_row(tiny):
    frame = shallows.sweep(tiny, AXES, seeds=2, metrics=["all.mean", "marks"])
    assert list(frame.columns) == [*AXES, "seed", "all.mean", "marks"]
    assert frame["workload.poisson.load"].tolist() == [0.3] * 4 + [0.6] * 4
    assert frame["seed"].tolist() == [1, 2] * 4
    alone = shallows.run(tiny, set={"workload.poisson.load": 0.6, "ports.switch.marker.scheme": "none"}, seed=2)
    assert frame["all.mean"].iloc[-1] == alone.metric("all.mean")
    assert frame["marks"].iloc[-1] == 0


def test_keys_change_together(tiny):
    keys = ("ports.switch.queues", "workload.poisson.services")
    frame = shallows.sweep(tiny, {keys: [(1, {"pair": 1}), (2, {"balanced": 2})]}, metrics=["all.mean"])
    assert frame["ports.switch.queues"].tolist() == [1, 2]


def test_a_submission_may_make_several_runs(tiny):
    class Counted(ThreadPoolExecutor):
        submissions = 0

        def submit(self, *arguments):
            self.submissions += 1
            return super().submit(*arguments)

    with Counted(2) as executor:
        chunks = shallows.sweep(tiny, AXES, seeds=2, executor=executor, chunk=3)
    assert executor.submissions == 3
    pandas.testing.assert_frame_equal(shallows.sweep(tiny, AXES, seeds=2), chunks)
    with pytest.raises(ValueError, match="chunk is 0"):
        shallows.sweep(tiny, AXES, chunk=0)


def test_processes_give_the_same(tiny):
    threads = shallows.sweep(tiny, AXES)
    with ProcessPoolExecutor(2) as executor:
        processes = shallows.sweep(tiny, AXES, executor=executor)
    pandas.testing.assert_frame_equal(threads, processes)


def test_a_dask_cluster_gives_the_same(tiny):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        dask = shallows.sweep(tiny, AXES, executor=client)
    pandas.testing.assert_frame_equal(shallows.sweep(tiny, AXES), dask)


def test_an_error_ends_the_sweep(tiny):
    with pytest.raises(shallows.ScenarioError, match="load is -1"):
        shallows.sweep(tiny, {"workload.poisson.load": [0.5, -1]})


def test_seeds_are_each_there_once_and_no_axis(tiny):
    for seeds in (0, -5, [], [1, 1, 2]):
        with pytest.raises(ValueError, match="seeds is"):
            shallows.sweep(tiny, {}, seeds=seeds)
    with pytest.raises(ValueError, match="seeds are no axis"):
        shallows.sweep(tiny, {"seed": [5, 6]})
    with pytest.raises(ValueError, match="seeds are no axis"):
        shallows.sweep(tiny, {("seed", "workload.poisson.load"): [(5, 0.1)]})
    with pytest.raises(ValueError, match="write seeds="):
        shallows.sweep(tiny, {}, set={"seed": 7})


def test_axes_without_values_and_of_other_lengths_are_refused(tiny):
    with pytest.raises(ValueError, match="no values"):
        shallows.sweep(tiny, {"workload.poisson.load": []})
    keys = ("workload.poisson.load", "workload.poisson.flows")
    with pytest.raises(ValueError, match="1 values for the 2 keys"):
        shallows.sweep(tiny, {keys: [(0.5,)]})


def test_numbers_of_numpy_are_numbers(tiny):
    numpy = pytest.importorskip("numpy")
    axes = {"workload.poisson.load": numpy.array([0.1, 0.2], dtype="float32")}
    frame = shallows.sweep(tiny, axes, seeds=numpy.arange(1, 3))
    assert len(frame) == 4
    assert len(shallows.sweep(tiny, {}, seeds=numpy.int64(2))) == 2


def test_ctrl_c_ends_a_sweep():
    child = subprocess.Popen([sys.executable, "-c", SWEEP], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(1)
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) != 0
    # A run of it takes much longer.
    assert time.monotonic() - begun < 10


SWEEP = """
import shallows
print("begun", flush=True)
shallows.sweep("scenarios/incast.toml", {}, seeds=4, set={"workload.incast.rounds": 1_000_000})
"""


def test_a_long_sweep_prints_its_progress(tiny, capsys, monkeypatch):
    monkeypatch.setattr("shallows._sweep._Progress.interval_s", 0.0)
    shallows.sweep(tiny, AXES, metrics=["all.mean"])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["1/4 runs", "2/4 runs", "3/4 runs"]
    assert all(line.endswith(" left") for line in lines)


def test_kept_runs_are_not_made_again(tiny, tmp_path):
    first = shallows.sweep(tiny, AXES, seeds=2, metrics=["all.mean", "marks"], store=tmp_path)
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert len(list(tmp_path.iterdir())) == len(first) == 8
    more = shallows.sweep(tiny, AXES, seeds=3, metrics=["all.mean", "marks"], store=tmp_path)
    assert made == {path: path.stat().st_mtime_ns for path in made}
    assert len(list(tmp_path.iterdir())) == len(more) == 12
    same = more[more["seed"] < 3].reset_index(drop=True)
    pandas.testing.assert_frame_equal(first, same)


@pytest.mark.filterwarnings("ignore:markers in Python")
def test_runs_with_markers_in_python_are_not_kept(tiny, tmp_path):
    @shallows.marker
    def step(queue, limit=7500):
        return queue > limit

    axes = {"ports.switch.marker.scheme": [{"step": {}}]}
    with pytest.raises(RuntimeError, match="cannot be kept"):
        shallows.sweep(tiny, axes, store=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_all_runs_are_of_the_scenario_as_it_was_at_the_start(tmp_path):
    path = tmp_path / "incast.toml"
    text = shallows.run("incast", set={"workload.incast.rounds": 1}).scenario
    path.write_text(text)

    class Editing(ThreadPoolExecutor):
        def submit(self, *arguments):
            path.write_text("edited")
            return super().submit(*arguments)

    with Editing(1) as executor:
        frame = shallows.sweep(os.fspath(path), {"transport.initial-window": [4, 10]}, executor=executor)
    assert len(frame) == 2
