import pytest

import shallows


@pytest.fixture
def quickstart():
    return shallows.Scenario.load("quickstart", set={"workload.poisson.flows": 30})


def test_keys_are_attributes(quickstart):
    assert quickstart.ports.switch.queues == 8
    quickstart.ports.switch.queues = 2
    quickstart.workload.poisson.services = {"balanced": 2}
    quickstart.transport["initial-window"] = 10
    assert quickstart.transport.initial_window == 10
    assert "initial_window" in dir(quickstart.transport)
    run = shallows.run(quickstart)
    assert len(run.flows) == 30 and "initial-window = 10" in run.scenario


def test_a_dict_becomes_a_scenario(tiny):
    scenario = shallows.Scenario(tiny)
    assert scenario.transport.initial_window == 10
    alone, same = shallows.run(tiny), shallows.run(scenario)
    assert alone.summary == same.summary


def test_each_assignment_is_checked(quickstart):
    before = quickstart.to_dict()
    wrong = [
        ("ports.switch", "quees", 4, 'unknown key "quees", did you mean "queues"?', "expected one of queues"),
        ("ports.switch", "queues", "many", "expected", None),
        ("workload.poisson", "load", "high", "expected", None),
        ("ports.switch.marker", "scheme", {"mq-en": {}}, '"mq-en", did you mean "mq-ecn"?', "expected one of"),
        ("ports.switch.marker", "scheme", {"mq-ecn": {"K": 3}}, 'unknown key "K"', "expected one of threshold"),
        ("transport", "rto", {"minimum": "10 mins"}, "10 mins", None),
    ]
    for table, key, value, message, hint in wrong:
        section = quickstart
        for name in table.split("."):
            section = getattr(section, name)
        with pytest.raises(shallows.ScenarioError) as error:
            setattr(section, key, value)
        assert error.value.key == f"{table}.{key}"
        assert message in error.value.message
        assert hint is None or error.value.hint.startswith(hint)
        assert quickstart.to_dict() == before


def test_what_keys_must_agree_on_is_checked_as_a_whole(quickstart):
    quickstart.ports.switch.queues = 0
    with pytest.raises(shallows.ScenarioError):
        quickstart.check()


def test_a_choice_replaces_the_one_before(quickstart):
    scheme = quickstart.ports.switch.marker.scheme
    scheme["per-queue"] = {"threshold": "20pkts"}
    assert list(quickstart.ports.switch.marker.scheme) == ["per-queue"]
    quickstart.check()


def test_a_key_comes_before_a_method_of_its_name(quickstart):
    quickstart.ports.switch.marker.scheme = {"mq-ecn": {"threshold": "30KB"}}
    scheme = quickstart.ports.switch.marker.scheme.mq_ecn
    assert scheme.update == "every-sample"
    scheme.update = {"interval": "10us"}
    assert scheme.update.interval == "10us"
    assert list(scheme.keys())[0] in scheme


def test_keys_without_a_value_are_none_and_can_be_left_out_again(quickstart):
    assert quickstart.until is None
    quickstart.until = "1ms"
    assert quickstart.until is not None
    del quickstart.until
    assert quickstart.until is None
    assert quickstart.transport.initial_window == 16
    del quickstart.transport.initial_window
    assert quickstart.transport.initial_window == 10
    with pytest.raises(shallows.ScenarioError, match='missing key "topology"'):
        del quickstart.topology


def test_reading_a_key_that_is_not_there_says_which_are(quickstart):
    with pytest.raises(AttributeError, match="there is no key 'quees' here; there are: .*queues"):
        quickstart.ports.switch.quees


def test_lists_have_sections(quickstart):
    poisson = quickstart.workload.to_dict()
    quickstart.workload = [poisson, {"flows": [{"src": 0, "dst": 1, "size": "20KB"}]}]
    assert len(quickstart.workload) == 2
    quickstart.workload[0].poisson.load = 0.2
    assert quickstart.workload[0].poisson.load == 0.2
    with pytest.raises(shallows.ScenarioError, match='did you mean "load"'):
        quickstart.workload[0].poisson.laod = 0.2
    assert len(shallows.run(quickstart).flows) == 31


def test_the_schema_describes_keys():
    schema = shallows.schema()
    assert {"topology", "ports", "workload"} <= set(schema["properties"])
