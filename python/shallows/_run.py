"""Runs and their tables."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Union

from . import _native
from ._json import encode
from ._marker import MARKERS, Marker
from ._scenario import Scenario
from ._source import NativeSource, settings
from ._workload import WORKLOADS, Workload, with_lists, with_workload, write_list

Source = Union[str, "os.PathLike[str]", Mapping[str, Any], Scenario]

#: Values by keys.
Changes = dict[str, Any]


class Table:
    """Columns of a run.

    Anything that reads Arrow takes it without a copy: ``pyarrow.table(t)``, ``polars.DataFrame(t)``,
    ``duckdb.sql("from t")``.
    """

    def __init__(self, native: _native.NativeTable) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._native)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, from the left."""
        return self._native.column_names()

    def __getitem__(self, column: str) -> Any:
        """A column as a ``pandas.Series``; needs pandas and pyarrow."""
        if column not in self.column_names:
            raise KeyError(f"there is no column {column!r}; there are: {', '.join(self.column_names)}")
        return self.to_arrow()[column].to_pandas()

    def __repr__(self) -> str:
        return f"<shallows.Table of {len(self)} rows: {', '.join(self.column_names)}>"

    def to_arrow(self) -> Any:
        """The table as a ``pyarrow.Table``, which shares its memory."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``; needs pyarrow."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The table as a ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)


class Run:
    """A finished run.

    >>> run = Scenario.load("incast").run(set={"workload.incast.rounds": 2})
    >>> run.fct("small")["mean"] <= run.fct("small")["p99"]
    True
    """

    def __init__(self, native: _native.NativeRun) -> None:
        self._native = native
        self._tables: dict[str, Table] = {}
        summary = native.summary()
        #: What the flows and ports come to: the content of ``summary.json``.
        self.summary: dict[str, Any] = json.loads(summary) if summary else {}

    @property
    def flows(self) -> Table:
        """One row a flow that started: ``start_s``, ``bytes``, ``fct_us``, ``ideal_fct_us``, ..."""
        return self.table("flows")

    @property
    def queues(self) -> Table:
        """Lengths of queues over time; the scenario needs ``probes.queues``."""
        return self.table("queues")

    @property
    def links(self) -> Table:
        """What ports sent over time; the scenario needs ``probes.throughput``."""
        return self.table("throughput")

    @property
    def rtt(self) -> Table:
        """Round-trip times that flows saw; the scenario needs ``probes.rtt``."""
        return self.table("flows-rtt")

    def table(self, name: str) -> Table:
        """A table by the name of its file without extension; ``KeyError`` if the run has none."""
        if name not in self._tables:
            self._tables[name] = Table(self._native.table(name))
        return self._tables[name]

    @property
    def ports(self) -> list[str]:
        """Names of ports, by the numbers that tables have for them."""
        return self._native.ports()

    @property
    def scenario(self) -> str:
        """The scenario as it was run, with every key, in TOML."""
        return self._native.scenario()

    def fct(self, size_class: str = "all") -> dict[str, float]:
        """Completion times of flows in microseconds, by ``"mean"``, ``"p50"``, ``"p99"``, ``"max"`` and others.

        ``size_class`` is ``"all"``, ``"small"``, ``"medium"`` or ``"large"``.
        """
        classes = self.summary.get("classes", {})
        if size_class not in classes:
            raise KeyError(f"there is no class {size_class!r}; there are: {', '.join(classes)}")
        times: dict[str, float] = classes[size_class].get("fct_us") or {}
        return times

    def save(self, directory: str | os.PathLike[str], format: str = "parquet") -> None:
        """Writes the run into a directory, as ``shallows run --out`` does; :func:`open` reads it.

        ``format`` of the tables is ``"parquet"`` or ``"csv"``.
        """
        self._native.save(os.fspath(directory), format)

    def metric(self, name: str) -> float | None:
        """A number of the run by the name that figures have for it, such as ``small.p99``."""
        return self._native.metric(name)

    def figure(self) -> Figure:
        """Flow completion times, and queue lengths if they were sampled; a notebook shows it."""
        return Figure(self._native.figure())

    def _repr_svg_(self) -> str:
        return self._native.figure()

    def __repr__(self) -> str:
        classes = self.summary.get("classes", {})
        of_all = classes.get("all", {})
        p99 = (classes.get("small", {}).get("fct_us") or {}).get("p99")
        small = f", small flows {p99:.4g} us at p99" if p99 is not None else ""
        return f"<shallows.Run of {of_all.get('flows', 0)} flows{small}; print() shows its summary>"

    def __str__(self) -> str:
        return str(self._native)


class Figure:
    """A figure as SVG."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Figure:
        """Reads a figure from an SVG file."""
        with builtins.open(path, encoding="utf-8") as file:
            return cls(file.read())

    def __repr__(self) -> str:
        return f"<shallows.Figure of {len(self.svg)} bytes of SVG>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the figure into a file."""
        with builtins.open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def run(
    scenario: Source,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    flows: Any = None,
    threads: int = 1,
) -> Run:
    """Simulates a scenario: the path of a TOML file or the name of an example, a dict like a file,
    or a :class:`Scenario`.

    ``set`` changes keys, such as ``{"workload.poisson.load": 0.8}``; ``seed`` is short for one of
    them. ``flows`` replaces the workload: a data frame (pandas, polars, pyarrow) or the path of a
    CSV file with the columns ``start_s, src, dst, bytes, service``, or an iterable of such rows.
    Other threads of Python run meanwhile, and Ctrl-C ends it.

    >>> run("incast", set={"workload.incast.rounds": 2}).summary["partial"]
    False
    >>> two = [(0.0, 1, 0, 20_000), (1e-6, 2, 0, 20_000)]
    >>> len(run("incast", flows=two).flows)
    2
    """
    path, text = source(scenario)
    changes = dict(set or {})
    if seed is not None:
        changes["seed"] = seed
    with contextlib.ExitStack() as stack:
        if flows is not None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="shallows-"))
            changes = with_workload(changes, {"list": _flow_list(flows, directory)})
        return Run(simulate(path, text, changes, threads))


def open(directory: str | os.PathLike[str]) -> Run:
    """Reads a run that the command or :meth:`Run.save` wrote."""
    return Run(_native.open(os.fspath(directory), MARKERS))


def simulate(
    path: str,
    text: str | None,
    changes: Changes,
    threads: int = 1,
    markers: Mapping[str, Marker] = MARKERS,
    workloads: Mapping[str, Workload] = WORKLOADS,
    stop: _native.Stop | None = None,
    store: str | None = None,
    content: str | None = None,
) -> _native.NativeRun:
    """Simulates a scenario as :func:`source` gives it, with keys changed, until ``stop`` is set.

    ``content`` is the text of the file at ``path``, if it was read before.
    With a ``store`` the run is kept there, and taken from there if it was made before.
    """
    with contextlib.ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory
        lists = lambda: stack.enter_context(temporary(prefix="shallows-"))
        changes = with_lists(path, text, changes, workloads, markers, lists, content)
        native = NativeSource(path, text, settings(changes), dict(markers), content)
        return _native.run(native, threads, stop, store)


def source(scenario: Source) -> tuple[str, str | None]:
    """A scenario as the native module takes it."""
    if isinstance(scenario, Scenario):
        return scenario.name or "scenario", encode(scenario.to_dict())
    if isinstance(scenario, Mapping):
        return "scenario", encode(scenario)
    return os.fspath(scenario), None


def _flow_list(flows: Any, directory: str) -> str:
    if isinstance(flows, (str, os.PathLike)):
        return os.path.abspath(flows)
    path = os.path.join(directory, "flows.csv")
    columns = ["start_s", "src", "dst", "bytes", "service"]
    if hasattr(flows, "to_csv"):
        flows[columns].to_csv(path, index=False)
    elif hasattr(flows, "write_csv"):
        flows.select(columns).write_csv(path)
    elif hasattr(flows, "__arrow_c_stream__"):
        import pyarrow

        table = pyarrow.table(flows).select(columns)
        write_list(zip(*(column.to_pylist() for column in table.columns)), path)
    elif isinstance(flows, Iterable):
        write_list(flows, path)
    else:
        raise TypeError(f"flows is {flows!r}; expected a data frame, a path or an iterable of rows")
    return path
