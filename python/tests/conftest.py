import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    """Paths of scenarios are those of the repository, in doc strings too."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def tiny():
    return {
        "seed": 7,
        "topology": {"star": {"hosts": 4, "rate": "10Gbps", "delay": "1us"}},
        "ports": {
            "switch": {
                "queues": 2,
                "buffer": {"shared": {"size": "100KB"}},
                "scheduler": {"dwrr": {"quantum": "1500B"}},
                "marker": {"scheme": {"mq-ecn": {"threshold": "20pkts"}}},
            }
        },
        "workload": {
            "poisson": {
                "load": 0.5,
                "size": "30KB",
                "flows": 50,
                "services": {"balanced": 2},
            }
        },
    }


@pytest.fixture
def command():
    """The command, if it is there to compare with."""
    path = os.environ.get("SHALLOWS", ROOT / "target/debug/shallows")
    if not os.path.exists(path):
        pytest.skip("there is no shallows to compare with; set SHALLOWS")
    return str(path)


def pytest_sessionfinish(session, exitstatus):
    """With SHALLOWS_REQUIRE_ALL=1 a skipped test is a failure, as in the tests in Rust."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", [])
    if os.environ.get("SHALLOWS_REQUIRE_ALL") == "1" and skipped and exitstatus == 0:
        reporter.write_line(f"{len(skipped)} skipped, and SHALLOWS_REQUIRE_ALL=1")
        session.exitstatus = 1
