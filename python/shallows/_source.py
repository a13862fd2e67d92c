"""Scenarios as the native module takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ._json import encode
from ._marker import MARKERS, Marker


class NativeSource(NamedTuple):
    """A scenario with keys set on top."""

    #: A file, or what errors call the text.
    path: str
    #: The scenario in JSON; none for a file.
    text: str | None
    #: Keys with values in JSON.
    settings: list[tuple[str, str]] = []
    markers: dict[str, Marker] = MARKERS
    #: Text of the file if it was read before, so that it need not be read again.
    content: str | None = None


def settings(changes: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Keys and values as the native module takes them."""
    return [(key, encode(value)) for key, value in changes.items()]
