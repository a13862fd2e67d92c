import pytest

import shallows


@shallows.workload
def ring(hosts, random, rounds=2, size=20_000):
    for turn in range(rounds):
        for source in range(hosts):
            start = turn * 1e-3 + random.random() * 1e-4
            yield shallows.Flow(start, source, (source + 1) % hosts, size, service=turn % 2)


def test_a_scenario_names_a_workload(tiny):
    run = shallows.run({**tiny, "workload": {"ring": {"rounds": 3}}})
    flows = run.flows.to_pandas()
    assert len(flows) == 3 * 4
    assert set(flows["bytes"]) == {20_000} and set(flows["service"]) == {0, 1}
    assert len(shallows.run({**tiny, "workload": "ring"}).flows) == 2 * 4


def test_the_seed_determines_its_flows(tiny):
    change = {"workload": {"ring": {}}}
    one, same, other = (shallows.run(tiny, set=change, seed=seed) for seed in (1, 1, 2))
    assert one.flows.to_arrow().equals(same.flows.to_arrow())
    assert not one.flows.to_arrow().equals(other.flows.to_arrow())


def test_it_stands_beside_others(tiny):
    workload = [{"ring": {}}, {"poisson": {"load": 0.1, "size": "2KB", "flows": 5}}, {"ring": {}}]
    flows = shallows.run({**tiny, "workload": workload}).flows.to_pandas()
    assert len(flows) == 8 + 5 + 8
    # Each has random numbers of its own.
    assert flows["start_s"].nunique() == len(flows)


def test_parameters_are_axes(tiny):
    frame = shallows.sweep(
        tiny, {"workload.ring.size": [1460, 14_600]}, metrics=["all.mean"], set={"workload.ring.rounds": 1}
    )
    small, large = frame["all.mean"]
    assert small < large


def test_a_key_inside_a_workload_that_set_gives_is_an_axis(tiny):
    frame = shallows.sweep(
        tiny, {"workload.ring.rounds": [1, 2]}, metrics=["all.mean"], set={"workload": {"ring": {"size": 1460}}}
    )
    assert frame["all.mean"].notna().all()
    flows = [(0.0, 1, 0, 20_000)]
    run = shallows.run(tiny, set={"workload": {"ring": {}}, "workload.ring.rounds": 1}, flows=flows)
    assert len(run.flows) == 1


def test_mistakes_are_told(tiny):
    with pytest.raises(shallows.ScenarioError, match="unexpected keyword argument 'round'") as error:
        shallows.run(tiny, set={"workload": {"ring": {"round": 3}}})
    assert error.value.hint == "its parameters are: rounds, size"
    with pytest.raises(shallows.ScenarioError, match="has no flows"):
        shallows.run(tiny, set={"workload": {"ring": {"rounds": 0}}})

    @shallows.workload
    def broken(hosts, random):
        yield 1, 2

    with pytest.raises(TypeError, match=r"\(1, 2\) is no flow"):
        shallows.run(tiny, set={"workload": {"broken": {}}})

    @shallows.workload
    def far(hosts, random):
        yield 0.0, 0, hosts, 1000

    with pytest.raises(shallows.ScenarioError, match="far-0.csv"):
        shallows.run(tiny, set={"workload": {"far": {}}})
    with pytest.raises(shallows.ScenarioError, match="raet"):
        shallows.run({**tiny, "topology": {"star": {"hosts": 4, "raet": 1}}}, set={"workload": {"ring": {}}})


def test_rows_replace_the_workload(tiny):
    rows = [(0.0, 0, 1, 1460), {"start_s": 1e-6, "src": 1, "dst": 0, "bytes": 2920, "service": 1}]
    flows = shallows.run(tiny, flows=iter(rows)).flows.to_pandas()
    assert flows["bytes"].tolist() == [1460, 2920]
    with pytest.raises(TypeError, match="expected a data frame"):
        shallows.run(tiny, flows=5)
