"""The evaluator of alerts agrees with Prometheus, on cases from its documentation and its own tests of functions."""

import pytest

from tests.stages.promql import Labels, evaluate

Samples = list[tuple[float, float]]


def labels(**pairs: str) -> Labels:
    return frozenset(pairs.items())


def every(seconds: float, *values: float) -> Samples:
    return [(number * seconds, value) for number, value in enumerate(values)]


NONE = labels()


@pytest.mark.parametrize(
    ("expression", "samples", "at", "expected"),
    [
        # A counter that grows by 10 in each 5 minutes: 100 in 50 minutes, whatever the phase of the scrapes.
        ("increase(x[50m])", every(300, *range(0, 110, 10)), 3000, 100),
        ("rate(x[50m])", every(300, *range(0, 110, 10)), 3000, 100 / 3000),
        # A restart: what was counted before it is not lost. A range is open on its left: the sample at 0 is not in it.
        ("increase(x[50m])", every(300, 0, 10, 20, 30, 40, 50, 0, 10, 20, 30, 40), 3000, 80 * 3000 / 2700),
        # From zero on, nothing is extrapolated to before the counter began.
        ("increase(x[10m])", every(60, 0, 0, 1), 120, 1),
        ("x > 2", every(60, 3), 30, 3),
        ("x * 2 + 1", every(60, 3), 30, 7),
        ("(x - 1) / 4", every(60, 3), 30, 0.5),
    ],
)
def test_a_vector_of_one_series(expression: str, samples: Samples, at: float, expected: float) -> None:
    assert evaluate(expression, {("x", NONE): samples}, at) == pytest.approx({NONE: expected})


@pytest.mark.parametrize("expression", ["x > 3", "x == 2", "y", "x and y", "increase(x[1m])"])
def test_nothing_is_left(expression: str) -> None:
    assert evaluate(expression, {("x", NONE): every(60, 3)}, 30) == {}


def test_a_sample_is_stale_after_five_minutes() -> None:
    series = {("x", NONE): every(60, 3)}
    assert evaluate("x", series, 299) == {NONE: 3}
    assert evaluate("x", series, 300) == {}


def test_and_keeps_the_left_side_where_the_named_labels_agree() -> None:
    series = {
        ("x", labels(instance="a", zone="1")): every(60, 5),
        ("x", labels(instance="b", zone="1")): every(60, 6),
        ("leads", labels(instance="a")): every(60, 1),
        ("leads", labels(instance="b")): every(60, 0),
    }
    assert evaluate("x and on (instance) leads == 1", series, 1) == {labels(instance="a", zone="1"): 5}
    assert evaluate("max(x and on (instance) leads == 1) > 4", series, 1) == {NONE: 5}
    assert evaluate("sum by (zone) (x)", series, 1) == {labels(zone="1"): 11}


def test_matchers_choose_series() -> None:
    series = {("x", labels(result=each)): every(60, 1) for each in ("failed", "timeout", "completed")}
    assert evaluate('sum(x{result=~"failed|timeout"})', series, 1) == {NONE: 2}
    assert evaluate('sum(x{result="completed"})', series, 1) == {NONE: 1}


def test_a_quantile_is_interpolated_within_its_bucket() -> None:
    counts = {"300": 2, "600": 4, "900": 10, "+Inf": 10}
    series = {("b", labels(le=bound)): every(60, value) for bound, value in counts.items()}
    assert evaluate("histogram_quantile(0.9, b)", series, 1) == {NONE: pytest.approx(600 + 300 * 5 / 6)}
    assert evaluate("histogram_quantile(0.1, b)", series, 1) == {NONE: pytest.approx(150)}


@pytest.mark.parametrize("expression", ["x or y", "avg(x)", "x ~ 2", "x unless y", "1"])
def test_what_is_not_known_fails(expression: str) -> None:
    with pytest.raises(AssertionError):
        evaluate(expression, {("x", NONE): every(60, 3)}, 30)
