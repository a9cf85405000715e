"""A small evaluator of PromQL: what the rules of deploy/alerts use, with the semantics of Prometheus 3.

It knows selectors with matchers and ranges, arithmetic and comparisons with numbers and between vectors of equal
labels, `and` with `on`, `sum` and `max` with `by`, `increase`, `rate` and `histogram_quantile`. Anything else fails.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Series = Mapping[tuple[str, Labels], list[tuple[float, float]]]  # by name and labels: seconds and value, in order

STALE_SECONDS = 300  # an instant vector takes the newest sample of the last five minutes
_TOKEN = re.compile(r'\s*(?:([A-Za-z_:][\w:]*)|([0-9.]+(?:[smhd])?)|("[^"]*")|(=~|!=|==|>=|<=|[-+*/(){}\[\],=<>]))')
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda left, right: left > right,
    "<": lambda left, right: left < right,
    ">=": lambda left, right: left >= right,
    "<=": lambda left, right: left <= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right if right else float("nan"),
}


def evaluate(expression: str, series: Series, at: float) -> Vector:
    """The vector that the expression has at a moment, in seconds."""
    found = _Evaluation(expression, series, at).whole()
    assert isinstance(found, dict), f"{expression} is a number"
    return found


_AGGREGATIONS: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}


class _Evaluation:
    """Owner of the place in one expression."""

    def __init__(self, expression: str, series: Series, at: float) -> None:
        self.tokens = _tokens(expression)
        self.series, self.at = series, at

    def whole(self) -> Any:
        found = self._and()
        assert not self.tokens, f"not understood: {' '.join(self.tokens)}"
        return found

    def _take(self, expected: str = "") -> str:
        token = self.tokens.pop(0)
        assert expected in {"", token}, f"expected {expected}, got {token}"
        return token

    def _next_is(self, *tokens: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in tokens

    def _and(self) -> Any:
        left = self._comparison()
        while self._next_is("and"):
            self._take()
            on = self._names("on")
            right = self._comparison()
            keys = {_of(labels, on) for labels in right}
            left = {labels: value for labels, value in left.items() if _of(labels, on) in keys}
        return left

    def _comparison(self) -> Any:
        left = self._arithmetic("+", "-")
        if self._next_is(*_COMPARISONS):
            compare, right = _COMPARISONS[self._take()], self._arithmetic("+", "-")
            return {labels: value for labels, value, other in _pairs(left, right) if compare(value, other)}
        return left

    def _arithmetic(self, *operators: str) -> Any:
        left = self._factor(operators)
        while self._next_is(*operators):
            compute, right = _ARITHMETIC[self._take()], self._factor(operators)
            left = {labels: compute(value, other) for labels, value, other in _pairs(left, right)}
        return left

    def _factor(self, operators: tuple[str, ...]) -> Any:
        return self._arithmetic("*", "/") if "+" in operators else self._operand()

    def _operand(self) -> Any:
        token = self._take()
        if token == "(":
            found = self._and()
            self._take(")")
            return found
        if token[0].isdigit():
            return float(token)
        if token in _AGGREGATIONS:
            return self._aggregated(_AGGREGATIONS[token])
        if token == "histogram_quantile":
            self._take("(")
            quantile = float(self._take())
            self._take(",")
            found = self._and()
            self._take(")")
            return _quantile(quantile, found)
        if token in {"increase", "rate"}:
            self._take("(")
            found = self._extrapolated(self._take(), token == "rate")
            self._take(")")
            return found
        return self._instant(token)

    def _aggregated(self, combine: Callable[[list[float]], float]) -> Vector:
        by = self._names("by")
        self._take("(")
        found: Vector = self._and()
        self._take(")")
        groups: dict[Labels, list[float]] = defaultdict(list)
        for labels, value in found.items():
            groups[_of(labels, by or ())].append(value)
        return {labels: combine(values) for labels, values in groups.items()}

    def _names(self, keyword: str) -> tuple[str, ...] | None:
        if not self._next_is(keyword):
            return None
        self._take()
        self._take("(")
        names = []
        while (token := self._take()) != ")":
            names += [] if token == "," else [token]
        return tuple(names)

    def _instant(self, name: str) -> Vector:
        found = {}
        for labels, samples in self._selected(name):
            within = _within(samples, self.at - STALE_SECONDS, self.at)
            if within:
                found[labels] = within[-1][1]
        return found

    def _selected(self, name: str) -> list[tuple[Labels, list[tuple[float, float]]]]:
        matches: list[Callable[[Labels], bool]] = []
        if self._next_is("{"):
            self._take()
            while not self._next_is("}"):
                matches.append(_matcher(self._take(), self._take(), self._take()[1:-1]))
                if self._next_is(","):
                    self._take()
            self._take("}")
        return [
            (labels, samples)
            for (known, labels), samples in self.series.items()
            if known == name and all(match(labels) for match in matches)
        ]

    def _extrapolated(self, name: str, is_rate: bool) -> Vector:
        selected = self._selected(name)
        self._take("[")
        span = _seconds(self._take())
        self._take("]")
        found = {}
        for labels, samples in selected:
            within = _within(samples, self.at - span, self.at)
            if len(within) > 1:
                found[labels] = _increase(within, self.at - span, self.at) / (span if is_rate else 1)
        return found


def _within(samples: list[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    """Those after the start, up to the end."""
    first = bisect_right(samples, start, key=lambda each: each[0])
    return samples[first : bisect_right(samples, end, first, key=lambda each: each[0])]


def _increase(samples: list[tuple[float, float]], start: float, end: float) -> float:
    """As Prometheus has it: corrected for restarts, and extrapolated to the ends of the range."""
    (first_at, first), (last_at, last) = samples[0], samples[-1]
    values = [value for _, value in samples]
    increase = last - first + sum(before for before, after in pairwise(values) if after < before)
    sampled = last_at - first_at
    apart = sampled / (len(samples) - 1)
    to_start, to_end = first_at - start, end - last_at
    to_start = apart / 2 if to_start >= 1.1 * apart else to_start
    if increase > 0 and first >= 0:
        to_start = min(to_start, sampled * first / increase)
    to_end = apart / 2 if to_end >= 1.1 * apart else to_end
    return increase * (sampled + to_start + to_end) / sampled


def _quantile(quantile: float, buckets: Vector) -> Vector:
    bounds = sorted((float(dict(labels)["le"]), value) for labels, value in buckets.items())
    if not bounds or not bounds[-1][1]:
        return {}
    rank, below, under = quantile * bounds[-1][1], 0.0, 0.0
    for bound, count in bounds:
        if count >= rank:
            if bound == float("inf"):
                return {frozenset(): below}
            share = (rank - under) / (count - under) if count > under else 1
            return {frozenset(): below + (bound - below) * share}
        below, under = bound, count
    return {frozenset(): below}


def _pairs(left: Any, right: Any) -> list[tuple[Labels, float, float]]:
    if isinstance(right, float):
        return [(labels, value, right) for labels, value in left.items()]
    return [(labels, value, right[labels]) for labels, value in left.items() if labels in right]


def _of(labels: Labels, names: tuple[str, ...] | None) -> Labels:
    return labels if names is None else frozenset(pair for pair in labels if pair[0] in names)


def _matcher(name: str, operator: str, wanted: str) -> Callable[[Labels], bool]:
    if operator == "=~":
        return lambda labels: re.fullmatch(wanted, dict(labels).get(name, "")) is not None
    assert operator == "=", operator
    return lambda labels: dict(labels).get(name, "") == wanted


def _seconds(text: str) -> float:
    return float(text[:-1]) * _UNITS[text[-1]]


def _tokens(expression: str) -> list[str]:
    tokens, at, text = [], 0, expression.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found, f"not understood: {text[at:]}"
        tokens.append(next(part for part in found.groups() if part is not None))
        at = found.end()
    return tokens
