"""Markers in Python."""

from __future__ import annotations

import warnings
from typing import Any, Callable

Marker = Callable[[int, int], Any]

#: By the names that scenarios have for them.
MARKERS: dict[str, Marker] = {}


def marker(function: Marker) -> Marker:
    """Lets scenarios name a function as their marker: ``marker.scheme.<name> = {}``.

    The function gets the lengths of the packet's queue and of its whole port in bytes, this packet
    included, and says whether the packet is marked. Every packet at every port calls Python, so
    this is for teaching and for small scenarios: ``incast.toml`` takes 2.7 times as long.

    >>> @marker
    ... def step(queue: int, port: int) -> bool:
    ...     return queue > 30_000
    """
    if not MARKERS:
        warnings.warn(
            "markers in Python are called for every packet: expect runs to take about 3 times as long",
            stacklevel=2,
        )
    MARKERS[function.__name__.replace("_", "-")] = function
    return function
