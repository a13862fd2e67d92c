"""Workloads in Python."""

from __future__ import annotations

import csv
import inspect
import json
import os
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Union

from . import _native
from ._errors import ScenarioError
from ._source import NativeSource, settings


class Flow(NamedTuple):
    """A flow to simulate: ``bytes`` from host ``src`` to host ``dst``, from ``start_s`` seconds on.

    >>> Flow(start_s=1e-3, src=1, dst=0, bytes=20_000)
    Flow(start_s=0.001, src=1, dst=0, bytes=20000, service=0)
    """

    start_s: float
    src: int
    dst: int
    bytes: int
    service: int = 0


#: A flow as workloads yield it: a :class:`Flow`, a tuple or a dict like one.
Row = Union[Flow, "tuple[Any, ...]", Mapping[str, Any]]
Workload = Callable[..., Iterable[Row]]

#: By the names that scenarios have for them.
WORKLOADS: dict[str, Workload] = {}


def workload(function: Workload) -> Workload:
    """Lets scenarios name a function as their workload: ``workload.<name> = {...}``.

    The function gets the number of hosts, a ``random.Random`` that the run's seed determines, and
    what the scenario gives it as keyword arguments. It yields flows, in any order: :class:`Flow`,
    tuples or dicts. It is called once a run, before the first packet, so runs are as fast as ever.

    >>> import shallows
    >>> @shallows.workload
    ... def waves(hosts, random, senders=4, size=20_000):
    ...     for wave in range(5):
    ...         for sender in random.sample(range(1, hosts), senders):
    ...             yield shallows.Flow(wave * 1e-3, sender, 0, size)
    >>> run = shallows.run("incast", set={"workload": {"waves": {"senders": 8}}})
    >>> len(run.flows)
    40
    """
    WORKLOADS[function.__name__.replace("_", "-")] = function
    return function


def with_lists(
    path: str,
    text: str | None,
    changes: dict[str, Any],
    workloads: Mapping[str, Workload],
    markers: Mapping[str, Any],
    directory: Callable[[], str],
    content: str | None = None,
) -> dict[str, Any]:
    """The changes with workloads in Python replaced by the lists of their flows."""
    if not workloads:
        return changes
    # A seed may exceed the integers of TOML, in which the keys are read.
    of_toml = settings({key: value for key, value in changes.items() if key != "seed"})
    source = NativeSource(path, text, of_toml, dict(markers), content)
    keys = json.loads(_native.keys(source))
    seed = changes.get("seed", keys.get("seed", 1))
    written = keys.get("workload", [])
    entries = written if isinstance(written, list) else [written]

    def own(entry: Any) -> str | None:
        name = next(iter(entry), None) if isinstance(entry, dict) and len(entry) == 1 else entry
        return name if isinstance(name, str) and name in workloads else None

    if not any(own(entry) for entry in entries):
        return changes
    hosts = _native.hosts(source._replace(settings=[*of_toml, ("workload", "[]")]))
    lists = []
    for index, entry in enumerate(entries):
        name = own(entry)
        if name is None:
            lists.append(entry)
            continue
        parameters = entry[name] if isinstance(entry, dict) else {}
        # Equal seeds have equal flows, and workloads of one run numbers of their own.
        numbers = random.Random(f"{seed} {index}")
        flows = _call(name, workloads[name], hosts, numbers, parameters)
        file = os.path.join(directory(), f"{name}-{index}.csv")
        if write_list(flows, file) == 0:
            shown = f"the workload {name!r} has no flows"
            raise ScenarioError(shown, shown, hint="its function yields at least one")
        lists.append({"list": file})
    return with_workload(changes, lists)


def with_workload(changes: Mapping[str, Any], workload: Any) -> dict[str, Any]:
    """The changes with another workload.

    Keys are set in their order, and what is set inside ``workload`` is part of it already: it comes
    last, and keys inside it not at all.
    """
    others = {key: value for key, value in changes.items() if key.split(".")[0] != "workload"}
    return {**others, "workload": workload}


def _call(
    name: str, function: Workload, hosts: int, numbers: random.Random, parameters: Any
) -> Iterable[Row]:
    if not isinstance(parameters, dict):
        shown = f"workload.{name} is {parameters!r}; expected a table of its parameters"
        raise ScenarioError(shown, shown)
    parameters = {key.replace("-", "_"): value for key, value in parameters.items()}
    signature = inspect.signature(function)
    try:
        signature.bind(hosts, numbers, **parameters)
    except TypeError as error:
        known = ", ".join(list(signature.parameters)[2:]) or "none"
        message, hint = f"workload.{name}: {error}", f"its parameters are: {known}"
        raise ScenarioError(f"{message}; {hint}", message, hint=hint) from None
    return function(hosts, numbers, **parameters)


def write_list(flows: Iterable[Row], path: str) -> int:
    """Writes flows as a CSV list; answers with how many."""
    count = 0
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Flow._fields)
        for flow in flows:
            try:
                row = Flow(**flow) if isinstance(flow, Mapping) else Flow(*flow)
            except TypeError:
                expected = "start_s, src, dst, bytes and perhaps service"
                raise TypeError(f"{flow!r} is no flow; expected {expected}") from None
            writer.writerow(row)
            count += 1
    return count
