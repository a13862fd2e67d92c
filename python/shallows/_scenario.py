"""Scenarios as objects."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._errors import ScenarioError
from ._json import encode
from ._source import NativeSource, settings

if TYPE_CHECKING:
    from ._run import Run

#: Names of tables and positions in lists, from the root of a scenario.
Path = tuple[Union[str, int], ...]


def schema() -> dict[str, Any]:
    """The JSON schema of scenarios, with every key and what it is for.

    >>> schema()["properties"]["seed"]["description"]
    'Seed of every random choice.'
    """
    described: dict[str, Any] = json.loads(_native.schema())
    return described


def example(name: str, set: Mapping[str, Any] | None = None) -> Scenario:
    """A scenario that is built in, with some keys changed; :func:`examples` lists them.

    >>> example("incast", set={"workload.incast.rounds": 2}).workload.incast.rounds
    2
    """
    keys: dict[str, Any] = json.loads(_native.example(name))
    keys.setdefault("name", name.rpartition("/")[2])
    scenario = Scenario(keys)
    for key, value in (set or {}).items():
        scenario._assign(tuple(key.split(".")), value)
    return scenario


def examples() -> dict[str, str]:
    """Names of the scenarios that are built in, with a sentence about each.

    >>> examples()["quickstart"]
    'Sixteen hosts, web-search traffic at 60% load, eight services.'
    """
    return dict(_native.examples())


class Section(MutableMapping[str, Any]):
    """A table of a scenario, with its keys as attributes too: ``-`` is written ``_``.

    It is a view: what is assigned is checked and set in the scenario. Keys that the scenario leaves
    out have their defaults, or ``None``; assigning ``None`` or deleting a key leaves it out again.
    A key comes before a method of its name: ``mq_ecn.update`` is the key, not
    ``MutableMapping.update``.
    """

    _scenario: Scenario
    _path: Path

    def __init__(self, scenario: Scenario, path: Path) -> None:
        object.__setattr__(self, "_scenario", scenario)
        object.__setattr__(self, "_path", path)

    def _table(self) -> dict[str, Any]:
        table: dict[str, Any] = self._scenario._value(self._path)
        return table

    def __getitem__(self, key: str) -> Any:
        return self._scenario._view((*self._path, key), self._table()[key])

    def __setitem__(self, key: str, value: Any) -> None:
        self._scenario._assign((*self._path, key), value)

    def __delitem__(self, key: str) -> None:
        if key not in self._table():
            raise KeyError(key)
        self._scenario._assign((*self._path, key), None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            key = name.replace("_", "-")
            if key in self._table():
                return self[key]
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name.replace("_", "-")]
        except KeyError:
            known = ", ".join(sorted(self._table()))
            raise AttributeError(f"there is no key {name!r} here; there are: {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name.replace("_", "-")] = value

    def __delattr__(self, name: str) -> None:
        del self[name.replace("_", "-")]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key.replace("-", "_") for key in self._table())]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def to_dict(self) -> dict[str, Any]:
        """The keys that have values, as plain dicts and lists."""
        keys: dict[str, Any] = _plain(self._table())
        return keys


class Items(Sequence[Any]):
    """A list of a scenario, whose tables are views too."""

    def __init__(self, scenario: Scenario, path: Path) -> None:
        self._scenario = scenario
        self._path = path

    def __getitem__(self, index: Any) -> Any:
        items = self._scenario._value(self._path)
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(items)))]
        at = range(len(items))[index]
        return self._scenario._view((*self._path, at), items[at])

    def __setitem__(self, index: int, value: Any) -> None:
        self._scenario._assign((*self._path, range(len(self))[index]), value)

    def __len__(self) -> int:
        return len(self._scenario._value(self._path))

    def __eq__(self, other: object) -> bool:
        return bool(_plain(self) == _plain(other))

    def __repr__(self) -> str:
        return repr(_plain(self))


class Scenario(Section):
    """A scenario with every key, those with defaults included.

    Each assignment is checked: an unknown key or a value of the wrong kind raises
    :class:`ScenarioError` with the key and a hint, and changes nothing. What several keys must
    agree on, such as services and queues, :meth:`check` tells.

    >>> scenario = Scenario.load("quickstart")
    >>> scenario.transport.initial_window
    16
    >>> scenario.transport.initial_window = 10
    >>> scenario.workload.poisson.load = 0.8
    >>> scenario.ports.switch.marker.scheme = {"per-queue": {"threshold": "20pkts"}}
    >>> scenario.check()
    >>> scenario.ports.switch.quees = 4  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    shallows.ScenarioError: unknown key "quees", did you mean "queues"?
     --> ports.switch.quees=4
      = expected one of queues, ...
    """

    _keys: dict[str, Any]

    def __init__(self, keys: Mapping[str, Any], name: str | None = None) -> None:
        super().__init__(self, ())
        object.__setattr__(self, "_keys", {})
        self._replace(NativeSource(name or "scenario", encode(_plain(keys))))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], set: Mapping[str, Any] | None = None
    ) -> Scenario:
        """Reads a TOML file, or an example by its name, with some keys changed."""
        scenario = cls.__new__(cls)
        Section.__init__(scenario, scenario, ())
        scenario._replace(NativeSource(os.fspath(path), None, settings(set or {})))
        return scenario

    def check(self) -> None:
        """Raises :class:`ScenarioError` if it cannot be run."""
        _native.check(NativeSource(self.name or "scenario", encode(self.to_dict())))

    def run(
        self,
        set: Mapping[str, Any] | None = None,
        seed: int | None = None,
        flows: Any = None,
        threads: int = 1,
    ) -> Run:
        """Simulates the scenario; the arguments are those of :func:`shallows.run`."""
        from ._run import run

        return run(self, set, seed, flows, threads)

    def _replace(self, source: NativeSource) -> None:
        keys = json.loads(_native.resolve(source))
        # One workload is a table, as people write it.
        if len(keys["workload"]) == 1:
            keys["workload"] = keys["workload"][0]
        object.__setattr__(self, "_keys", keys)

    def _value(self, path: Path) -> Any:
        value: Any = self._keys
        for step in path:
            value = value[step]
        return value

    def _view(self, path: Path, value: Any) -> Any:
        if isinstance(value, dict):
            return Section(self, path)
        return Items(self, path) if isinstance(value, list) else value

    def _assign(self, path: Path, value: Any) -> None:
        keys, value = self.to_dict(), _plain(value)
        key = ".".join(map(str, path))
        changes = {}
        if value is None:
            table: Any = keys
            for step in path[:-1]:
                table = table[step]
            table.pop(path[-1], None)
        else:
            changes[key] = value
        try:
            self._replace(NativeSource(self.name or "scenario", encode(keys), settings(changes)))
        except ScenarioError as error:
            error.key = key
            raise


def _plain(value: Any) -> Any:
    """Plain dicts and lists, without keys that have no value."""
    if isinstance(value, Mapping):
        return {key: _plain(of) for key, of in value.items() if of is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(of) for of in value]
    return value
