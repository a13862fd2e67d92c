"""Simulates datacenter fabrics, packet by packet.

>>> import shallows
>>> run = shallows.run({
...     "topology": {"star": {"hosts": 4, "rate": "10Gbps", "delay": "1us"}},
...     "ports": {"switch": {"buffer": {"shared": {"size": "300KB"}}, "scheduler": "fifo"}},
...     "workload": {"poisson": {"load": 0.5, "size": "20KB", "flows": 100}},
... })
>>> run.summary["classes"]["all"]["flows"]
100
>>> len(run.flows)
100
"""

from __future__ import annotations

from ._errors import ScenarioError
from ._run import Figure, Run, Table, open, run
from ._marker import marker
from ._scenario import Scenario, Section, example, examples, schema
from ._study import Study, compare, repro, study, tune, validate
from ._sweep import sweep
from ._workload import Flow, workload

__all__ = [
    "Figure",
    "Flow",
    "Run",
    "Scenario",
    "ScenarioError",
    "Section",
    "Study",
    "Table",
    "compare",
    "example",
    "examples",
    "marker",
    "open",
    "repro",
    "run",
    "schema",
    "study",
    "sweep",
    "tune",
    "validate",
    "workload",
]
