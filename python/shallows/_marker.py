"""Markers in Python."""

from __future__ import annotations

import inspect
import json
import warnings
from typing import Any, Callable

#: A function, or a class with one instance for each port.
Marker = Callable[..., Any]

#: By the names that scenarios have for them.
MARKERS: dict[str, Marker] = {}

#: What a marker can ask for about a packet and its port, by the names of its arguments.
OBSERVED = ("queue", "port", "time", "sojourn", "number", "packets", "dscp", "pool")


def marker(function: Marker) -> Marker:
    """Lets scenarios name a function or a class as their marker: ``marker.scheme.<name> = {}``.

    The arguments of a function are what it observes, by name, and its parameters, which are keys of
    the scenario and can be varied. It returns whether the packet is marked:

    >>> @marker
    ... def step(queue: int, limit: int = 30_000) -> bool:
    ...     return queue > limit

    Observations: ``queue`` and ``port`` (length of the packet's queue and of all queues of its port in
    bytes, this packet included), ``packets`` (length of the queue in packets), ``pool`` (bytes in all
    ports of the switch), ``number`` (number of the queue), ``dscp`` (the packet's DSCP field, which is
    its service unless there are stages), ``time`` (in seconds) and ``sojourn`` (waiting time of the
    packet in seconds; the marker then decides at dequeue).

    A class has state: each port has an instance, made from the parameters of ``__init__``, and
    ``__call__`` decides:

    >>> @marker
    ... class EveryOther:
    ...     def __init__(self, above: int = 30_000) -> None:
    ...         self.above, self.odd = above, False
    ...
    ...     def __call__(self, queue: int) -> bool:
    ...         self.odd = not self.odd
    ...         return queue > self.above and self.odd

    Every packet at every port calls Python, so this is for teaching and for small scenarios.
    """
    if not MARKERS:
        warnings.warn(
            "markers in Python are called for every packet: expect runs to take about 3 times as long",
            stacklevel=2,
        )
    MARKERS[function.__name__.replace("_", "-")] = function
    return function


def make(name: str, function: Marker, parameters: str) -> tuple[Marker, list[str]]:
    """The marker of one port, for parameters in JSON, and the observations that it takes.

    Raises ``ValueError`` with a sentence for the user if the parameters do not fit.
    """
    given = {key.replace("-", "_"): value for key, value in json.loads(parameters).items()}
    if isinstance(function, type):
        _check(name, given, _arguments(function))
        function, given = function(**given), {}
    arguments = _arguments(function)
    observed = [argument for argument in arguments if argument in OBSERVED]
    settable = {key: needed for key, needed in arguments.items() if key not in OBSERVED}
    _check(name, given, settable)
    if not given:
        return _by_position(function, observed), observed
    decide = function
    return (lambda *values: decide(**dict(zip(observed, values)), **given)), observed


def _by_position(function: Marker, observed: list[str]) -> Marker:
    """The function itself if its first arguments are the observations, which is the fastest call."""
    if list(_arguments(function))[: len(observed)] == observed:
        return function
    return lambda *values: function(**dict(zip(observed, values)))


def _arguments(function: Marker) -> dict[str, bool]:
    """Names of the arguments in their order, and whether each must be given."""
    arguments = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError("a marker names its arguments; *args and **kwargs are not supported")
        arguments[name] = parameter.default is parameter.empty
    return arguments


def _check(name: str, given: dict[str, Any], settable: dict[str, bool]) -> None:
    takes = ", ".join(settable) or "no parameters"
    for key in given:
        if key not in settable:
            raise ValueError(f"marker {name} has no parameter {key}; it takes {takes}")
    for key, needed in settable.items():
        if needed and key not in given:
            observed = ", ".join(OBSERVED)
            raise ValueError(f"marker {name} needs the parameter {key} (markers observe {observed})")
