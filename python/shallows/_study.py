"""Many runs: studies, searches, papers and comparisons, as the command ``shallows`` makes them.

Each function runs the command in a process of its own and reads what it prints as JSON. Its messages
and its progress go to ``sys.stderr``. Runs are kept, so that an interrupted call can be repeated.
Markers and workloads in Python are functions of this process: use :func:`shallows.sweep` with them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Union

from ._json import encode
from ._run import Figure
from ._sweep import frame_of

Path = Union[str, "os.PathLike[str]"]

#: The command ``shallows`` of this installation.
_COMMAND = "from shallows._command import main; raise SystemExit(main())"


class Study:
    """The results of a study.

    A notebook shows its figure; :attr:`points` has the means with their 95% intervals.
    """

    def __init__(self, out: str, points: list[dict[str, Any]]) -> None:
        #: Directory of the tables, figures and runs.
        self.out = out
        self._points = points

    @property
    def points(self) -> Any:
        """One row per point and metric: mean, interval (``low``, ``high``) and the ratio to the
        first point, as a data frame."""
        return frame_of(self._points)

    @property
    def runs(self) -> Any:
        """One row per run with its metrics, as a ``pyarrow.Table``."""
        import pyarrow.parquet

        return pyarrow.parquet.read_table(os.path.join(self.out, "runs.parquet"))

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The claims of the study with their verdicts; none if it has none."""
        with open(os.path.join(self.out, "study.json"), encoding="utf-8") as file:
            claims: list[dict[str, Any]] = json.load(file).get("claims", [])
        return claims

    @property
    def figures(self) -> list[Figure]:
        """The figures of the study."""
        names = sorted(name for name in os.listdir(self.out) if name.endswith(".svg"))
        return [Figure.load(os.path.join(self.out, name)) for name in names]

    def _repr_svg_(self) -> str | None:
        figures = self.figures
        return figures[0].svg if figures else None

    def __repr__(self) -> str:
        return f"<shallows.Study in {self.out!r}: {len(self._points)} points and metrics>"


def study(
    study: Path,
    out: Path | None = None,
    *,
    store: Path | None = None,
    seeds: int | None = None,
    set: Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> Study:
    """Runs a study: a TOML file, or the name of a built-in one such as ``"thresholds"``.

    ``out`` is the directory of its results (default: ``out/NAME``), ``store`` that of its runs,
    which studies may share. ``set`` changes keys in every run.
    """
    if out is None:
        stem = os.path.splitext(os.path.basename(os.fspath(study)))[0]
        out = os.path.join("out", stem)
    options = {"--out": out, "--store": store, "--seeds": seeds, "--threads": threads}
    points = _json("sweep", [study], options, set)
    return Study(os.fspath(out), points)


def tune(
    scenarios: Path | Iterable[Path],
    knobs: Mapping[str, str],
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    keep: Iterable[str] = (),
    seeds: int | None = None,
    set: Mapping[str, Any] | None = None,
    out: Path | None = None,
    store: Path | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Searches for better values of keys; the outcome has the sentence, the choice and the front.

    ``knobs`` has ranges or lists of values by keys, such as
    ``{"ports.switch.marker.scheme.mq-ecn.threshold": "8pkts..64pkts"}``; ``keep`` has bounds on
    other metrics, such as ``"large.mean <= +2%"``.
    """
    options: dict[str, Any] = {
        "--minimize": minimize,
        "--maximize": maximize,
        "--keep": list(keep),
        "--knob": [f"{key}={values}" for key, values in knobs.items()],
        "--seeds": seeds,
        "--out": out,
        "--store": store,
        "--threads": threads,
    }
    several = [scenarios] if isinstance(scenarios, (str, os.PathLike)) else list(scenarios)
    outcome: dict[str, Any] = _json("tune", several, options, set)
    return outcome


def repro(
    *figures: str,
    quick: bool = False,
    seeds: int | None = None,
    at: Iterable[float] = (),
    set: Mapping[str, Any] | None = None,
    out: Path | None = None,
    threads: int | None = None,
) -> Any:
    """Reproduces figures of the papers, such as ``"mq-ecn/fig9"``, or a whole paper.

    The outcomes have each claim with the paper's value, ours and the verdict. ``quick`` reduces the
    size, ``at`` chooses values of the x axis.
    """
    options = {
        "--quick": quick,
        "--seeds": seeds,
        "--at": ",".join(map(str, at)) or None,
        "--out": out,
        "--threads": threads,
    }
    return _json("repro", figures, options, set)


def validate(*simulators: str, runs: int | None = None, out: Path | None = None) -> Any:
    """Compares with the results of published simulators, flow by flow.

    The simulators are ``"mq-ecn"``, ``"ear"`` and ``"qjump"``, all if none is named. The list has
    one entry for each.
    """
    return _json("validate", simulators, {"--runs": runs, "--out": out})


def compare(
    scenario: Path,
    *,
    scale: float | None = None,
    set: Mapping[str, Any] | None = None,
    out: Path | None = None,
) -> Any:
    """Runs a scenario simulated and live and compares both. Needs Linux and root."""
    return _json("compare", [scenario], {"--scale": scale, "--out": out}, set)


def _json(
    command: str,
    operands: Iterable[Path],
    options: Mapping[str, Any],
    set: Mapping[str, Any] | None = None,
) -> Any:
    arguments = [command, "--json"]
    for name, value in options.items():
        if value is True:
            arguments.append(name)
        elif isinstance(value, list):
            arguments.extend(f"{name}={one}" for one in value)
        elif value is not None and value is not False:
            arguments.append(f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    arguments.extend(f"--set={key}={_toml(value)}" for key, value in (set or {}).items())
    arguments.append("--")
    arguments.extend(os.fspath(operand) for operand in operands)
    with subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        messages: list[str] = []
        reader = threading.Thread(target=_pass_on, args=(process.stderr, messages))
        reader.start()
        try:
            printed = process.stdout.read()
            process.wait()
        except BaseException:
            # Ctrl-C: what it has made so far is kept.
            process.terminate()
            raise
        finally:
            reader.join()
    if process.returncode:
        raise RuntimeError("".join(messages).strip() or f"shallows {command} ended with {process.returncode}")
    return json.loads(printed)


def _toml(value: Any) -> str:
    """A value as TOML has it on one line, which is JSON but for tables."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{encode(key)} = {_toml(of)}" for key, of in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return encode(value)


def _pass_on(messages: Any, kept: list[str]) -> None:
    """Shows messages as they come and keeps the last of them."""
    for line in messages:
        kept.append(line)
        del kept[:-20]
        print(line, end="", file=sys.stderr, flush=True)
