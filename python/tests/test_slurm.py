"""Sweeps on a Slurm that is up: `.ci/slurm` starts one and sets SHALLOWS_SLURM."""

import os

import pytest

import shallows

if "SHALLOWS_SLURM" not in os.environ:
    pytest.skip("there is no Slurm; .ci/slurm starts one", allow_module_level=True)

import pandas
import submitit

AXES = {"workload.poisson.load": [0.3, 0.6], "ports.switch.queues": [2, 4]}


@pytest.fixture
def executor(tmp_path):
    executor = submitit.AutoExecutor(folder=tmp_path / "submitit", cluster="slurm")
    executor.update_parameters(timeout_min=5, cpus_per_task=1, slurm_array_parallelism=2)
    return executor


def test_submitit_gives_the_same(tiny, executor, tmp_path):
    here = shallows.sweep(tiny, AXES, seeds=2)
    there = shallows.sweep(tiny, AXES, seeds=2, executor=executor, chunk=4)
    pandas.testing.assert_frame_equal(here, there)
    # One array of two tasks.
    scripts = list((tmp_path / "submitit").glob("*_submission.sh"))
    assert len(scripts) == 1 and "--array=0-1%2" in scripts[0].read_text()


@pytest.mark.filterwarnings("ignore:markers in Python")
def test_functions_go_with_the_runs(tiny, executor):
    @shallows.workload
    def pairs(hosts, random, count):
        for start in range(count):
            source, destination = random.sample(range(hosts), 2)
            yield start * 1e-5, source, destination, 30_000

    @shallows.marker
    def above(queue, port):
        return queue > 7500

    workloads = {"workload.pairs.count": [20, 40]}
    marker = {"ports.switch.marker.scheme": {"above": {}}}
    metrics = ["all.mean", "marks"]
    here = shallows.sweep(tiny, workloads, set=marker, metrics=metrics)
    there = shallows.sweep(tiny, workloads, set=marker, metrics=metrics, executor=executor, chunk=2)
    pandas.testing.assert_frame_equal(here, there)
    assert there["marks"].sum() > 0


def test_an_error_comes_back(tiny, executor):
    with pytest.raises(submitit.core.utils.FailedJobError, match="load is -1"):
        shallows.sweep(tiny, {"workload.poisson.load": [-1]}, executor=executor)
