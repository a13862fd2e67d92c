"""Sweeps: a scenario with some keys varied, over seeds."""

from __future__ import annotations

import contextlib
import itertools
import numbers
import operator
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _native
from ._json import encode
from ._marker import MARKERS
from ._run import Changes, Source, simulate, source
from ._workload import WORKLOADS

#: A path, a text in JSON or else the content of the file, and the keys that are set in it.
Job = tuple[str, "str | None", "str | None", Changes]


class _Progress:
    """Lines about the progress of a sweep."""

    interval_s = 10.0

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.begun = self.printed = time.monotonic()

    def show(self, done: int) -> None:
        now = time.monotonic()
        if now - self.printed < self.interval_s or done == self.runs:
            return
        self.printed = now
        left = (now - self.begun) / done * (self.runs - done)
        words = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
        print(f"{done}/{self.runs} runs, {words} left", file=sys.stderr, flush=True)


def sweep(
    scenario: Source,
    axes: Mapping[str, Sequence[Any]],
    seeds: int | Iterable[int] = 1,
    executor: Any = None,
    metrics: Sequence[str] = ("all.mean", "small.p99", "large.mean", "timeouts", "drops", "marks"),
    set: Mapping[str, Any] | None = None,
    chunk: int = 1,
    store: str | os.PathLike[str] | None = None,
) -> Any:
    """Runs a scenario for every combination of axis values and seeds; answers with a data frame.

    ``axes`` has lists of values by keys. A key may be a tuple of keys whose values, tuples too,
    change together. ``seeds`` is a number of them, or which. ``metrics`` are numbers of runs as
    figures name them.

    ``executor`` is anything with the ``submit`` of ``concurrent.futures``: processes, a Dask client,
    submitit's executors, whose jobs are submitted as one array; by default threads, one for each
    core. ``chunk`` is how many runs one submission makes: a Slurm task or a remote worker needs
    about a second to start, so give it many short runs.

    ``store`` is a directory in which runs are kept, also those of the command ``shallows``: a sweep
    that was interrupted continues, and a wider one makes what is new. Workers need to reach it.
    Runs with markers in Python are not kept.

    A sweep that takes long prints its progress to ``sys.stderr``, at most once in 10 seconds.

    The data frame is of pandas, or else of polars, or else a pyarrow table, with one row a run:
    the axis values, the seed and the metrics.

    >>> frame = sweep("incast", {"workload.incast.block": ["100KB", "200KB"]},
    ...               metrics=["all.mean"], set={"workload.incast.rounds": 2})
    >>> len(frame)
    2
    """
    if chunk < 1:
        raise ValueError(f"chunk is {chunk}; a submission makes at least one run")
    path, text = source(scenario)
    if text is None and os.path.exists(path):
        # Workers may have another working directory. Names of examples are the same everywhere.
        path = os.path.abspath(path)
    # Once, so that all runs are of one scenario even if the file changes meanwhile.
    content = _native.read(path) if text is None else None
    keys = list(axes)
    chosen = _seeds(seeds)
    _check_axes(axes, set or {})
    rows: list[dict[str, Any]] = []
    jobs: list[Job] = []
    for values in itertools.product(*axes.values()):
        varied: dict[str, Any] = {}
        for key, value in zip(keys, values):
            varied.update(zip(key, value) if isinstance(key, tuple) else [(key, value)])
        for seed in chosen:
            rows.append({**varied, "seed": seed})
            jobs.append((path, text, content, {**(set or {}), **varied, "seed": seed}))
    chunks = [jobs[start : start + chunk] for start in range(0, len(jobs), chunk)]
    functions = _named_functions(text or content or "", jobs)
    kept = os.path.abspath(store) if store is not None else None
    own: ThreadPoolExecutor | None = None
    more: tuple[_native.Stop, ...] = ()
    # Ctrl-C reaches the main thread only, so the others look at this.
    stop = _native.Stop()
    if executor is None:
        own = executor = ThreadPoolExecutor(os.cpu_count())
        more = (stop,)
    futures: list[Any] = []
    try:
        # submitit's executors make one job array of what is submitted within their `batch`.
        with getattr(executor, "batch", contextlib.nullcontext)():
            for of_chunk in chunks:
                futures.append(executor.submit(_measure, of_chunk, list(metrics), kept, *functions, *more))
        measured = itertools.chain.from_iterable(future.result() for future in futures)
        progress = _Progress(len(rows))
        for done, (row, values) in enumerate(zip(rows, measured), 1):
            row.update(values)
            progress.show(done)
    except BaseException:
        stop.set()
        for future in futures:
            future.cancel()
        raise
    finally:
        if own is not None:
            own.shutdown()
    for row in rows:
        for key, value in row.items():
            if isinstance(value, (dict, list)):
                row[key] = encode(value)
    return frame_of(rows)


def _seeds(seeds: Any) -> list[int]:
    """The seeds from 1 to a number, or those of a list, each once."""
    if isinstance(seeds, numbers.Integral):
        chosen = list(range(1, int(seeds) + 1))
    else:
        chosen = [operator.index(seed) for seed in seeds]
    if not chosen:
        raise ValueError(f"seeds is {seeds!r}; a sweep needs one at least")
    if len({*chosen}) < len(chosen):
        # Equal runs would make an interval look narrower than it is.
        raise ValueError(f"seeds is {seeds!r}; write each seed once")
    return chosen


def _check_axes(axes: Mapping[Any, Sequence[Any]], fixed: Mapping[str, Any]) -> None:
    """Refuses axes that would make no runs, or other runs than they say."""
    for key, values in axes.items():
        several = key if isinstance(key, tuple) else (key,)
        if "seed" in several:
            raise ValueError("seeds are no axis: every point runs with all of them; write seeds=[5, 6]")
        if len(values) == 0:
            raise ValueError(f"the axis {key!r} has no values")
        for value in values:
            if isinstance(key, tuple) and len(value) != len(key):
                raise ValueError(f"{value!r} has {len(value)} values for the {len(key)} keys {key!r}")
    if "seed" in fixed:
        raise ValueError("the seeds of a sweep are those of seeds; write seeds=[7]")


def _measure(
    jobs: list[Job],
    metrics: list[str],
    store: str | None,
    markers: dict[str, Callable[..., Any]],
    workloads: dict[str, Callable[..., Any]],
    stop: _native.Stop | None = None,
) -> list[dict[str, float | None]]:
    """Some runs, wherever the executor has them done."""
    measured = []
    for path, text, content, changes in jobs:
        run = simulate(
            path, text, changes, markers=markers, workloads=workloads, stop=stop, store=store, content=content
        )
        measured.append({metric: run.metric(metric) for metric in metrics})
    return measured


def _named_functions(
    text: str, jobs: list[Job]
) -> tuple[dict[str, Callable[..., Any]], dict[str, Callable[..., Any]]]:
    """The markers and workloads that the runs may name.

    They travel with the runs, because a worker elsewhere has none; all others stay here, because
    not every executor can send every function.
    """
    if not MARKERS and not WORKLOADS:
        return {}, {}
    words = encode([changes for _, _, _, changes in jobs]) + text

    def named(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        return {name: function for name, function in functions.items() if name in words}

    return named(MARKERS), named(WORKLOADS)


def frame_of(rows: list[dict[str, Any]]) -> Any:
    """A data frame of pandas, or else of polars, or else a pyarrow table."""
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
