import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import shallows

pyarrow = pytest.importorskip("pyarrow")


def test_the_command_gives_the_same(command, tmp_path):
    scenario = "scenarios/incast.toml"
    subprocess.run([command, "run", scenario, "--out", tmp_path, "--seed", "3"], check=True)
    run = shallows.run(scenario, seed=3)
    assert run.summary == json.loads((tmp_path / "summary.json").read_text())
    import pyarrow.parquet

    written = pyarrow.parquet.read_table(tmp_path / "flows.parquet")
    assert run.flows.to_arrow().equals(written.cast(run.flows.to_arrow().schema))


def test_settings_change_keys(tiny):
    run = shallows.run(tiny, set={"workload.poisson.flows": 20, "transport.controller": "reno"})
    assert len(run.flows) == 20
    assert "[transport.controller.reno]" in run.scenario
    nested = shallows.run(tiny, set={"ports.switch.marker.scheme": {"per-queue": {"threshold": "5pkts"}}})
    assert "[ports.switch.marker.scheme.per-queue]" in nested.scenario


def test_equal_seeds_give_equal_flows(tiny):
    one, same, other = (shallows.run(tiny, seed=seed).flows.to_arrow() for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


def test_flows_of_a_data_frame_replace_the_workload(tiny):
    columns = {"start_s": [0.0, 0.001], "src": [0, 1], "dst": [2, 3], "bytes": [1460, 30_000], "service": [0, 1]}
    run = shallows.run(tiny, flows=pyarrow.table(columns))
    assert run.flows.to_arrow()["bytes"].to_pylist() == [1460, 30_000]
    pandas = pytest.importorskip("pandas")
    assert len(shallows.run(tiny, flows=pandas.DataFrame(columns)).flows) == 2


def test_tables_are_those_of_probes(tiny):
    probes = {"queues": {"links": "*->h0", "interval": "10us"}, "rtt": True}
    run = shallows.run({**tiny, "probes": probes})
    assert run.queues.column_names[:3] == ["time_us", "port", "queue"]
    assert len(run.rtt) > 0
    assert any("h0" in port for port in run.ports)
    with pytest.raises(KeyError, match="no table 'throughput'|no table \"throughput\""):
        run.links
    figure = run.figure()
    assert figure._repr_svg_().startswith("<svg") and "Longest queues" in figure.svg


def test_tables_change_hands_without_a_copy(tiny):
    flows = shallows.run(tiny).flows
    first, second = flows.to_arrow(), pyarrow.table(flows)
    address = lambda table: table["bytes"].chunk(0).buffers()[1].address
    assert address(first) == address(second)
    del flows, first
    assert sum(second["bytes"].to_pylist()) == 50 * 30_000


def test_polars_and_pandas_take_tables(tiny):
    flows = shallows.run(tiny).flows
    pandas = pytest.importorskip("pandas")
    assert isinstance(flows.to_pandas(), pandas.DataFrame)
    polars = pytest.importorskip("polars")
    assert flows.to_polars()["bytes"].sum() == 50 * 30_000
    assert isinstance(flows.to_polars(), polars.DataFrame)


def test_metrics_are_those_of_the_summary(tiny):
    run = shallows.run(tiny)
    mean_us = run.summary["classes"]["all"]["fct_us"]["mean"]
    assert run.metric("all.mean") == pytest.approx(mean_us / 1e3, rel=1e-12)
    with pytest.raises(ValueError, match="is not a metric"):
        run.metric("all.men")


def test_errors_say_where_and_what_to_write(tmp_path, tiny):
    path = tmp_path / "bad.toml"
    path.write_text('[topology.star]\nhosts = 4\nraet = "10Gbps"\n')
    with pytest.raises(shallows.ScenarioError) as error:
        shallows.run(path)
    assert error.value.file == str(path) and error.value.line == 3
    assert error.value.message == 'unknown key "raet", did you mean "rate"?'
    assert "expected one of" in error.value.hint
    with pytest.raises(shallows.ScenarioError, match="load is -1"):
        shallows.run(tiny, set={"workload.poisson.load": -1})
    with pytest.raises(shallows.ScenarioError, match="no such file"):
        shallows.run("nowhere.toml")


def test_other_threads_run_meanwhile(tiny):
    done = threading.Event()
    thread = threading.Thread(
        target=lambda: (shallows.run(tiny, set={"workload.poisson.flows": 20_000}), done.set())
    )
    thread.start()
    steps = 0
    while not done.is_set():
        steps += 1
        time.sleep(0)
    thread.join()
    assert steps > 10


def test_ctrl_c_ends_a_run(tiny):
    code = (
        "import json, sys, shallows\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    shallows.run(json.loads(sys.argv[1]), set={'workload.poisson.flows': 5_000_000})\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(tiny)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(2)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=120)[0] == "interrupted\n"
    assert child.returncode == 0


def test_the_exception_of_a_signal_handler_ends_a_run(tiny):
    class Enough(Exception):
        pass

    def handler(number, frame):
        raise Enough

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(Enough):
            shallows.run(tiny, set={"workload.poisson.flows": 5_000_000})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore:markers in Python")
def test_a_marker_in_python_is_one_like_ours(tiny):
    @shallows.marker
    def five_packets(queue, port):
        return queue > 7500

    python = shallows.run(tiny, set={"ports.switch.marker.scheme": {"five-packets": {}}})
    ours = {"per-queue": {"threshold": "7500B"}}
    rust = shallows.run(tiny, set={"ports.switch.marker.scheme": ours})
    assert python.metric("marks") > 0
    assert python.flows.to_arrow().equals(rust.flows.to_arrow())

    @shallows.marker
    def broken(queue, port):
        raise ZeroDivisionError("of mine")

    with pytest.raises(ZeroDivisionError, match="of mine"):
        shallows.run(tiny, set={"ports.switch.marker.scheme": {"broken": {}}})


@pytest.mark.filterwarnings("ignore:markers in Python")
def test_a_marker_has_parameters(tiny):
    @shallows.marker
    def above(queue, limit=7500):
        return queue > limit

    def marks(scheme):
        return shallows.run(tiny, set={"ports.switch.marker.scheme": scheme}).metric("marks")

    for limit in (1500, 4500, 7500):
        assert marks({"above": {"limit": limit}}) == marks({"per-queue": {"threshold": f"{limit}B"}})
    assert marks({"above": {}}) == marks({"above": {"limit": 7500}})
    assert marks({"above": {"limit": 10**9}}) == 0
    with pytest.raises(shallows.ScenarioError, match="marker above has no parameter full; it takes limit"):
        marks({"above": {"full": 1}})

    @shallows.marker
    def needy(queue, limit):
        return queue > limit

    with pytest.raises(shallows.ScenarioError, match="needs the parameter limit"):
        marks({"needy": {}})


@pytest.mark.filterwarnings("ignore:markers in Python")
def test_a_marker_sees_what_it_asks_for(tiny):
    seen = []

    @shallows.marker
    def curious(packets, time, port, queue, number, dscp, pool):
        seen.append((packets, time, port, queue, number, dscp, pool))
        return False

    shallows.run(tiny, set={"ports.switch.marker.scheme": {"curious": {}}})
    times = [time for _, time, *_ in seen]
    assert 0 < min(times) and max(times) < 1
    assert all(packets >= 1 and 0 < queue <= port <= pool for packets, _, port, queue, _, _, pool in seen)
    assert {number for *_, number, _, _ in seen} == {dscp for *_, dscp, _ in seen} == {0, 1}


@pytest.mark.filterwarnings("ignore:markers in Python")
def test_a_marker_by_sojourn_is_tcn(tiny):
    @shallows.marker
    def waited(sojourn, most=5e-6):
        return sojourn > most

    python = shallows.run(tiny, set={"ports.switch.marker.scheme": {"waited": {"most": 5e-6}}})
    rust = shallows.run(tiny, set={"ports.switch.marker.scheme": {"tcn": {"sojourn": "5us"}}})
    assert python.metric("marks") == rust.metric("marks") > 0
    assert python.flows.to_arrow().equals(rust.flows.to_arrow())


@pytest.mark.filterwarnings("ignore:markers in Python")
def test_each_port_has_its_own_instance_of_a_class(tiny):
    made = []

    @shallows.marker
    class Once:
        def __init__(self, above=1500):
            self.above, self.calls = above, 0
            made.append(self)

        def __call__(self, queue):
            self.calls += 1
            return self.calls == 1

    shallows.run(tiny, set={"ports.switch.marker.scheme": {"Once": {"above": 3000}}})
    used = [marker for marker in made if marker.calls]
    assert len(used) > 1
    assert {marker.above for marker in made} == {3000}
    with pytest.raises(shallows.ScenarioError, match="marker Once has no parameter below; it takes above"):
        shallows.run(tiny, set={"ports.switch.marker.scheme": {"Once": {"below": 1}}})


def test_a_marker_that_raises_ends_the_run(tiny):
    calls = []

    @shallows.marker
    def broken(queue, port):
        calls.append(queue)
        raise LookupError("no such queue")

    with pytest.raises(LookupError, match="no such queue"):
        shallows.run(tiny, set={"ports.switch.marker.scheme": {"broken": {}}})
    assert len(calls) == 1


def test_what_is_no_value_is_a_scenario_error(tiny):
    for value in (float("nan"), float("inf"), None, "\ud800", object()):
        with pytest.raises(shallows.ScenarioError):
            shallows.run(tiny, set={"workload.poisson.load": value})
    with pytest.raises(shallows.ScenarioError):
        shallows.Scenario(5)


def test_seeds_have_64_bits(tiny):
    assert len(shallows.run(tiny, seed=2**64 - 1).flows) == 50
