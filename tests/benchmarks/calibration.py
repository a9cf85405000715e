"""The unit of time that bounds of benchmarks are multiples of: what a fixed amount of work takes here and now.

One machine is slower than another, and slower on one day than on the next. A bound in seconds then says nothing, while
one in units of work that was timed in the same run moves with the machine. A unit took 100 ms when bounds were set.
"""

import time
from dataclasses import dataclass

import msgspec

ROUNDS = 7
STEPS = 8_000


class _Item(msgspec.Struct, frozen=True):
    """Something as large as a small object of Kubernetes."""

    name: str
    labels: dict[str, str]
    amounts: tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """How long the fixed amount of work takes on this machine in this run."""

    seconds: float

    def of_seconds(self, units: float) -> float:
        """A bound in seconds."""
        return round(units * self.seconds, 3)

    def of_ms(self, units: float) -> float:
        """A bound in milliseconds."""
        return round(1_000 * units * self.seconds, 1)

    @property
    def figures(self) -> dict[str, float | int | str]:
        """What is recorded beside bounds."""
        return {"unit_ms": self.of_ms(1)}


def calibrated() -> Unit:
    """By the time of the processor, at its best: others may be at work on the machine."""
    return Unit(min(_timed() for _ in range(ROUNDS)))


def _timed() -> float:
    began = time.process_time()
    _work()
    return time.process_time() - began


def _work() -> int:
    """Half of it plain Python, as planners are; half of it decoding and encoding, as observing is."""
    items = [
        _Item(f"item-{number}", {f"key-{each}": f"value-{number % 7}" for each in range(8)}, tuple(range(number % 20)))
        for number in range(STEPS)
    ]
    by_label: dict[str, list[_Item]] = {}
    for item in items:
        for key, value in item.labels.items():
            by_label.setdefault(f"{key}={value}", []).append(item)
    total = sum(sum(item.amounts) for found in by_label.values() for item in sorted(found, key=lambda item: item.name))
    text = msgspec.json.encode(items)
    for _ in range(4):
        total += len(msgspec.json.decode(text, type=list[_Item]))
        total += len(msgspec.json.encode(msgspec.to_builtins(items)))
    return total
