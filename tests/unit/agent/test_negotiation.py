"""The agent never uses more than its last permit, and asks for multiples of the compute unit within its bounds."""

from hypothesis import given
from hypothesis import strategies as some

from reconciler.agent.negotiation import Negotiation
from reconciler.agent.sizing import Usage, wanted
from reconciler.protocol.asks import Ask, AskAnswer, PodName, read_ask

GI = 2**30
BOUNDS = {"cpu": (250, 8_000), "memory": (GI, 32 * GI)}
UNIT = {"cpu": 250, "memory": GI}


def agent() -> Negotiation:
    return Negotiation(PodName("team", "a"), BOUNDS)


def test_a_pod_wants_its_load_to_be_a_share_of_its_cpus() -> None:
    assert wanted(Usage(1_800, 3 * GI), BOUNDS, UNIT) == {"cpu": 2_000, "memory": 4 * GI}
    assert wanted(Usage(1_801, 3 * GI + 1), BOUNDS, UNIT) == {"cpu": 2_250, "memory": 5 * GI}


@given(some.integers(0, 10**6), some.integers(0, 2**42), some.integers(1, 900), some.integers(1, 3 * GI))
def test_what_is_wanted_is_within_the_bounds(load: int, memory: int, cpu_unit: int, memory_unit: int) -> None:
    unit = {"cpu": cpu_unit, "memory": memory_unit}
    for name, amount in wanted(Usage(load, memory), BOUNDS, unit).items():
        least, most = BOUNDS[name]
        assert least <= amount <= most
        assert amount % unit[name] == 0 or amount == least


@given(
    some.lists(
        some.tuples(some.integers(0, 20_000), some.integers(0, 2**36), some.integers(1, 32), some.booleans()),
        max_size=20,
    )
)
def test_alone_the_agent_decides_within_its_last_permit(history: list[tuple[int, int, int, bool]]) -> None:
    negotiation = agent()
    last: dict[str, int] = {}
    for load, memory, units, is_answered in history:
        usage = Usage(load, memory)
        if is_answered:
            last = {"cpu": 250 * units, "memory": GI * units}
            negotiation.take(AskAnswer({"vCPUs": last["cpu"], "mem": last["memory"]}, {"vCPUs": 250, "mem": GI}))
        decided = negotiation.decide(usage)
        assert decided.keys() == last.keys()
        assert all(decided[name] <= last[name] for name in decided)


def test_an_ask_returns_the_last_permit_and_unit() -> None:
    negotiation = agent()
    first = read_ask(negotiation.ask(Usage(1_800, 3 * GI)))
    assert isinstance(first, Ask)
    assert (first.compute_unit, first.token, first.load_milli) == (None, "", 1_800)
    negotiation.take(AskAnswer({"vCPUs": 2_000}, {"vCPUs": 500, "mem": GI}, "token", {}))
    following = read_ask(negotiation.ask(Usage(1_801, 3 * GI)))
    assert isinstance(following, Ask)
    assert (following.compute_unit, following.token) == ({"cpu": 500, "memory": GI}, "token")
    assert following.resources == {"cpu": 2_500, "memory": 4 * GI}
    assert negotiation.is_leaving


def test_a_refusal_with_a_unit_is_heeded() -> None:
    negotiation = agent()
    negotiation.learn_unit({"vCPUs": 300})
    ask = read_ask(negotiation.ask(Usage(1_800, 3 * GI)))
    assert isinstance(ask, Ask)
    assert ask.resources["cpu"] == 2_100
