"""What Python and sweeps cost, one line each.

    pip install ./python pyarrow && cargo build --release
    python python/benchmarks/overhead.py [flows|run|marker|sweep] ... [--command target/release/shallows]

Needs an optimized build of both, and a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable

import shallows

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICKSTART = str(ROOT / "scenarios/quickstart.toml")
INCAST = str(ROOT / "scenarios/incast.toml")


def cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def in_turns(times: int, *measured: Callable[[], float]) -> list[float]:
    """Medians, of measurements one after the other so that all see the same machine."""
    rounds = [[measure() for measure in measured] for _ in range(times)]
    return [statistics.median(of) for of in zip(*rounds)]


def of_python(scenario: str, **options: object) -> Callable[[], float]:
    def measure() -> float:
        before = cpu_seconds(resource.RUSAGE_SELF)
        shallows.run(scenario, **options)
        return cpu_seconds(resource.RUSAGE_SELF) - before

    return measure


def of_command(*arguments: str) -> Callable[[], float]:
    def measure() -> float:
        before = cpu_seconds(resource.RUSAGE_CHILDREN)
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return cpu_seconds(resource.RUSAGE_CHILDREN) - before

    return measure


def flows(_: argparse.Namespace) -> None:
    """Columns of a million flow records, and their way to pyarrow."""
    import pyarrow

    count = 1_000_000
    star = {"hosts": 16, "rate": "100Gbps", "delay": "1us"}
    run = shallows.run(
        {
            "topology": {"star": star},
            "ports": {"switch": {"buffer": {"shared": {"size": "10MB"}}, "scheduler": "fifo"}},
            "workload": {"poisson": {"load": 0.5, "size": "1000B", "flows": count}},
        }
    )
    columns, handing = [], []
    for _ in range(9):
        start = time.perf_counter()
        table = run._native.table("flows")
        made = time.perf_counter()
        arrow = pyarrow.table(table)
        handing.append(time.perf_counter() - made)
        columns.append(made - start)
        assert arrow.num_rows == count
        del table, arrow
    made, handed = statistics.median(columns) * 1e3, statistics.median(handing) * 1e3
    print(f"flows: {count:,} records as columns {made:.1f} ms, to pyarrow {handed:.2f} ms")


def run(options: argparse.Namespace) -> None:
    """`shallows.run` beside the command, start and files of the command included."""
    changes = {"workload.poisson.flows": 2000}
    with tempfile.TemporaryDirectory() as directory:
        command = [options.command, "run", QUICKSTART, "--out", directory, "--threads", "1"]
        command += ["--set", "workload.poisson.flows=2000"]
        python, command = in_turns(9, of_python(QUICKSTART, set=changes), of_command(*command))
    ratio = 100 * (python / command - 1)
    print(f"run: Python {python:.3f} s, command {command:.3f} s of CPU time: {ratio:+.1f}%")


def marker(_: argparse.Namespace) -> None:
    """A marker in Python beside ours that does the same."""
    warnings.simplefilter("ignore")

    @shallows.marker
    def twenty(queue: int, port: int) -> bool:
        return queue > 30_000

    scheme = "ports.switch.marker.scheme"
    ours = {scheme: {"per-queue": {"threshold": "30000B"}}, "workload.incast.rounds": 100}
    theirs = {**ours, scheme: {"twenty": {}}}
    hops = shallows.run(INCAST, set=ours).summary["packet_hops"]
    rust, python = in_turns(5, of_python(INCAST, set=ours), of_python(INCAST, set=theirs))
    each = 1e9 / hops
    print(
        f"marker: {python * each:.0f} ns of CPU time a packet-hop with a marker in Python,"
        f" {rust * each:.0f} ns with ours: {python / rust:.1f} times as long"
    )


def sweep(options: argparse.Namespace) -> None:
    """What a sweep adds to each run: runs of a single flow, so that little else is left."""
    for keep in ("summary", "all"):
        with tempfile.TemporaryDirectory() as directory:
            study = pathlib.Path(directory, "study.toml")
            study.write_text(
                f'scenario = "{QUICKSTART}"\nseeds = 10\nkeep = "{keep}"\n'
                'set = ["workload.poisson.flows=1"]\n[[axis]]\nkey = "report.small-max"\n'
                f"values = {[f'{100_000 + step}B' for step in range(options.runs // 10)]}\n"
            )
            arguments = ["sweep", str(study), "--out", f"{directory}/out", "--threads", "1"]
            measure = of_command(options.command, *arguments)
            new, kept = (measure() / options.runs * 1e3 for _ in range(2))
        print(
            f'sweep, keep = "{keep}": {options.runs:,} runs of one flow take {new:.2f} ms of CPU'
            f" time each, {kept:.2f} ms where they are in the store"
        )


def main() -> None:
    parts = {part.__name__: part for part in (flows, run, marker, sweep)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    parser.add_argument("--command", default=str(ROOT / "target/release/shallows"))
    parser.add_argument("--runs", type=int, default=10_000, help="runs of the sweep")
    options = parser.parse_args()
    for part in options.parts or parts:
        parts[part](options)


if __name__ == "__main__":
    main()
