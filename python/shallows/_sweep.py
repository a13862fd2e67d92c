"""Sweeps: a scenario with some keys varied, over seeds."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._marker import MARKERS
from ._run import Changes, Source, simulate, source
from ._workload import WORKLOADS

#: A path or a text in JSON, and the keys that are set in it.
Job = tuple[str, "str | None", Changes]


def sweep(
    scenario: Source,
    axes: Mapping[str, Sequence[Any]],
    seeds: int | Iterable[int] = 1,
    executor: Any = None,
    metrics: Sequence[str] = ("all.mean", "small.p99", "large.mean", "timeouts", "drops", "marks"),
    set: Mapping[str, Any] | None = None,
    chunk: int = 1,
) -> Any:
    """Runs a scenario for every combination of axis values and seeds; answers with a data frame.

    ``axes`` has lists of values by keys. A key may be a tuple of keys whose values, tuples too,
    change together. ``seeds`` is a number of them, or which. ``metrics`` are numbers of runs as
    figures name them.

    ``executor`` is anything with the ``submit`` of ``concurrent.futures``: processes, a Dask client,
    submitit's executors, whose jobs are submitted as one array; by default threads, one for each
    core. ``chunk`` is how many runs one submission makes: a Slurm task or a remote worker needs
    about a second to start, so give it many short runs.

    The data frame is of pandas, or else of polars, or else a pyarrow table, with one row a run:
    the axis values, the seed and the metrics.

    >>> frame = sweep("scenarios/incast.toml", {"workload.incast.block": ["100KB", "200KB"]},
    ...               metrics=["all.mean"], set={"workload.incast.rounds": 2})
    >>> len(frame)
    2
    """
    if chunk < 1:
        raise ValueError(f"chunk is {chunk}; a submission makes at least one run")
    path, text = source(scenario)
    if text is None:
        # Workers may have another working directory.
        path = os.path.abspath(path)
    keys = list(axes)
    chosen = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    rows: list[dict[str, Any]] = []
    jobs: list[Job] = []
    for values in itertools.product(*axes.values()):
        varied: dict[str, Any] = {}
        for key, value in zip(keys, values):
            several = isinstance(key, tuple)
            varied.update(zip(key, value) if several else [(key, value)])
        for seed in chosen:
            rows.append({**varied, "seed": seed})
            jobs.append((path, text, {**(set or {}), **varied, "seed": seed}))
    chunks = [jobs[start : start + chunk] for start in range(0, len(jobs), chunk)]
    functions = _named_functions(path, text, jobs)
    own = None
    if executor is None:
        own = executor = ThreadPoolExecutor(os.cpu_count())
    futures: list[Any] = []
    try:
        # submitit's executors make one job array of what is submitted within their `batch`.
        with getattr(executor, "batch", contextlib.nullcontext)():
            for of_chunk in chunks:
                futures.append(executor.submit(_measure, of_chunk, list(metrics), *functions))
        measured = itertools.chain.from_iterable(future.result() for future in futures)
        for row, values in zip(rows, measured):
            row.update(values)
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    finally:
        if own is not None:
            own.shutdown()
    for row in rows:
        for key, value in row.items():
            if isinstance(value, (dict, list)):
                row[key] = json.dumps(value)
    return _frame(rows)


def _measure(
    jobs: list[Job],
    metrics: list[str],
    markers: dict[str, Callable[..., Any]],
    workloads: dict[str, Callable[..., Any]],
) -> list[dict[str, float | None]]:
    """Some runs, wherever the executor has them done."""
    measured = []
    for path, text, changes in jobs:
        run = simulate(path, text, changes, markers=markers, workloads=workloads)
        measured.append({metric: run.metric(metric) for metric in metrics})
    return measured


def _named_functions(
    path: str, text: str | None, jobs: list[Job]
) -> tuple[dict[str, Callable[..., Any]], dict[str, Callable[..., Any]]]:
    """The markers and workloads that the runs may name.

    They travel with the runs, because a worker elsewhere has none; all others stay here, because
    not every executor can send every function.
    """
    if not MARKERS and not WORKLOADS:
        return {}, {}
    words = json.dumps([changes for _, _, changes in jobs])
    if text is None:
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
            text = file.read()
    words += text or ""

    def named(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        return {name: function for name, function in functions.items() if name in words}

    return named(MARKERS), named(WORKLOADS)


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas

        return pandas.DataFrame(rows)
    except ImportError:
        pass
    try:
        import polars

        return polars.DataFrame(rows)
    except ImportError:
        import pyarrow

        return pyarrow.Table.from_pylist(rows)
