"""Sweeps: a scenario with some keys varied, over seeds."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _native
from ._marker import MARKERS
from ._run import Source, settings, source


def sweep(
    scenario: Source,
    axes: Mapping[str, Sequence[Any]],
    seeds: int | Iterable[int] = 1,
    executor: Any = None,
    metrics: Sequence[str] = ("all.mean", "small.p99", "large.mean", "timeouts", "drops", "marks"),
    set: Mapping[str, Any] | None = None,
) -> Any:
    """Runs a scenario for every combination of axis values and seeds; answers with a data frame.

    ``axes`` has lists of values by keys. A key may be a tuple of keys whose values, tuples too,
    change together. ``seeds`` is a number of them, or which. ``executor`` is anything with the
    ``submit`` of ``concurrent.futures``: processes, a Dask client, submitit's executors; by default
    threads, one for each core. ``metrics`` are numbers of runs as figures name them.

    The data frame is of pandas, or else of polars, or else a pyarrow table, with one row a run:
    the axis values, the seed and the metrics.

    >>> frame = sweep("scenarios/incast.toml", {"workload.incast.block": ["100KB", "200KB"]},
    ...               metrics=["all.mean"], set={"workload.incast.rounds": 2})
    >>> len(frame)
    2
    """
    path, text = source(scenario)
    if text is None:
        # Workers may have another working directory.
        path = os.path.abspath(path)
    keys = list(axes)
    chosen = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    rows: list[dict[str, Any]] = []
    tasks = []
    for values in itertools.product(*axes.values()):
        varied: dict[str, Any] = {}
        for key, value in zip(keys, values):
            several = isinstance(key, tuple)
            varied.update(zip(key, value) if several else [(key, value)])
        for seed in chosen:
            changes = settings({**(set or {}), **varied, "seed": seed})
            rows.append({**varied, "seed": seed})
            tasks.append((path, text, changes, list(metrics)))
    own = None
    if executor is None:
        own = executor = ThreadPoolExecutor(os.cpu_count())
    futures: list[Any] = []
    try:
        futures.extend(executor.submit(_measure, *task) for task in tasks)
        for row, future in zip(rows, futures):
            row.update(future.result())
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
    path: str, text: str | None, changes: list[tuple[str, str]], metrics: list[str]
) -> dict[str, float | None]:
    """One run, wherever the executor has it done."""
    run = _native.run(path, text, changes, MARKERS)
    return {metric: run.metric(metric) for metric in metrics}


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
