"""Scenarios as objects."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from . import _native


class Section(MutableMapping[str, Any]):
    """A table of a scenario, with its keys as attributes too: ``-`` is written ``_``."""

    def __init__(self, keys: dict[str, Any]) -> None:
        object.__setattr__(self, "_keys", keys)

    def __getitem__(self, key: str) -> Any:
        value = self._keys[key]
        return Section(value) if isinstance(value, dict) else value

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = value.to_dict() if isinstance(value, Section) else value

    def __delitem__(self, key: str) -> None:
        del self._keys[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name.replace("_", "-")]
        except KeyError:
            known = ", ".join(sorted(self._keys))
            raise AttributeError(f"there is no key {name!r} here; there are: {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name.replace("_", "-")] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key.replace("-", "_") for key in self._keys)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._keys!r})"

    def to_dict(self) -> dict[str, Any]:
        """The keys as plain dicts and lists."""
        return json.loads(json.dumps(self._keys))


class Scenario(Section):
    """A scenario with every key, those with defaults included.

    >>> scenario = Scenario.load("scenarios/quickstart.toml")
    >>> scenario.transport.initial_window
    16
    >>> scenario.transport.initial_window = 10
    >>> scenario.check()
    """

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], set: Mapping[str, Any] | None = None
    ) -> Scenario:
        """Reads a TOML file, with some keys changed."""
        settings = [(key, json.dumps(value)) for key, value in (set or {}).items()]
        return cls(_without_none(json.loads(_native.resolve(os.fspath(path), None, settings))))

    @property
    def name(self) -> str:
        """What it is called."""
        return self._keys.get("name") or "scenario"

    def check(self) -> None:
        """Raises :class:`ScenarioError` if it cannot be run."""
        _native.check(self.name, json.dumps(self.to_dict()), [])


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(of) for key, of in value.items() if of is not None}
    if isinstance(value, list):
        return [_without_none(of) for of in value]
    return value
