"""The canonical line of a decision, as the log and the golden tables of the tests show it.

    [would ]VERB SUBJECT[ DATA][ if PRECONDITION][ until TIME][ after SUBJECT,...]: CODE

    hold      hold Node/a until +60s: DrainCandidate
    apply     apply NodePool/a100 if absent: Missing
              apply NodePool/a100 by force: AdoptedByForce
              of a smart pod, with the request in its annotation:
              apply Pod/smart/p offering INSTANCE-TYPE[/CAPACITY-TYPE[/ZONE]] gpus 8 for POD-UID,...: SmartPodAsks
    delete    delete Node/a if empty: DrainedNodeDeleted
    taint     taint Node/a gpu.scheduling/draining=+0s:NoSchedule[ instead of EFFECT][ label LABEL...]: Drained
    untaint   untaint Node/a gpu.scheduling/draining:NoSchedule[ label LABEL...]: GivenBack
    evict     evict Pod/team/web-0[ to b] grace 30s: PodEvicted
              of a gang: evict Pod/team/web-0[ to b] grace 30s gang team/llama with Pod/team/web-1[ to c] grace 30s...
    annotate  annotate Pod/team/web-0 gpu.scheduling/evict-at=+120s: PodToldToSave
    label     label Node/a gpu.scheduling/provisioner=a100: NodeOfProvisioner
    ungate    ungate Pod/team/web-0 gpu.scheduling/capacity[ to a]: CapacityThere
    resize    resize Pod/team/web-0 cpu=500m: CODE
    bind      bind Pod/team/web-0 to a[ leases NAME,...][ ANNOTATION...]: CODE
    status    status GpuPool/a100: StatusTold

- `would`: the decision is suppressed, and nothing is written to the cluster.
- VERB is the action, SUBJECT is the kind, namespace and name, CODE is the reason (docs/reference/reasons.md). `after`:
  these subjects are written first.
- Taints, labels and annotations are written as for kubectl: KEY=VALUE:EFFECT, KEY=VALUE, and KEY- for a removal.
- TIME is in seconds from now: +600s is in ten minutes, -60s was a minute ago. The times in reconciler's own taints and
  annotations are written like this too, so that a line does not depend on the clock.
- A value is a JSON string if it has other characters than letters, digits and, between them, `_`, `.`, `/` and `-`.

Successive lines that differ only in the number at the end of the name of a node or pod are written as one line, with
the numbers in the order of the decisions. Ranges count up or down; 099 is followed by 100, and 9 by 10:

    taint Node/a100-[080-099,103] gpu.scheduling/deletion-time=+600s:PreferNoSchedule: SurplusEmptyNode

Two decisions have the same line only if they differ in nothing but what the line leaves out: the planner and the pool,
which the log has as fields; uids and resource versions; manifests and the bodies of statuses; the facts of the reason
and its policy line; fractions of a second.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, moment, timestamp, unix_seconds
from reconciler.model.parsers import json_value
from reconciler.model.plan.decision import (
    Action,
    Annotate,
    Apply,
    Bind,
    Decision,
    Evict,
    Hold,
    Label,
    Resize,
    Taint,
    Ungate,
)
from reconciler.plan.capacity.requests import CapacityRequest


def decision_line(decision: Decision, now: Instant) -> str:
    """The canonical line, with times relative to `now`."""
    before, after = _around(decision, now)
    return f"{before}{decision.subject.title}{after}"


# --- Groups of lines that differ only in a number.

_COUNTED_KINDS = frozenset({"Node", "Pod"})
_NUMBER = re.compile(r"[0-9]+\Z")


class DecisionGroup(msgspec.Struct, frozen=True):
    """Successive decisions, and the one line for all of them."""

    line: str
    decisions: tuple[Decision, ...]


def grouped(decisions: Sequence[Decision], now: Instant) -> Iterator[DecisionGroup]:
    """The decisions in their order, as one line for each run of lines that differ only in a number."""
    split = [(_split(each, now), each) for each in decisions]
    for _, run in groupby(enumerate(split), key=_run_key):
        parts, members = zip(*(each for _, each in run), strict=True)
        before, _, after = parts[0]
        numbers = [number for _, number, _ in parts]
        between = f"[{_ranges(numbers)}]" if len(numbers) > 1 else numbers[0]
        yield DecisionGroup(f"{before}{between}{after}", members)


def _split(decision: Decision, now: Instant) -> tuple[str, str, str]:
    """The line before, in and after the number at the end of the name; the number is empty if there is none."""
    before, after = _around(decision, now)
    title = decision.subject.title
    found = _NUMBER.search(title) if decision.subject.kind in _COUNTED_KINDS else None
    number = found.group() if found else ""
    return before + title.removesuffix(number), number, after


def _run_key(numbered: tuple[int, tuple[tuple[str, str, str], Decision]]) -> tuple[str, str, int]:
    """Equal for lines that differ only in a number; a line without a number is always alone."""
    position, ((before, number, after), _) = numbered
    return before, after, -1 if number else position


def _ranges(numbers: Sequence[str]) -> str:
    """080, 081, 082, 103 -> 080-082,103; and 082, 081, 080 -> 082-080."""
    ranges: list[list[str]] = []
    for number in numbers:
        if ranges and _continues(ranges[-1], number):
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ",".join(each[0] if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in ranges)


def _continues(counted: Sequence[str], number: str) -> bool:
    """Whether the number continues to count up or down."""
    is_up, is_down = number == _next(counted[-1]), counted[-1] == _next(number)
    if len(counted) == 1:
        return is_up or is_down
    return is_up if counted[1] == _next(counted[0]) else is_down


def _next(number: str) -> str:
    """099 -> 100, 9 -> 10."""
    return str(int(number) + 1).zfill(len(number))


# --- The parts of a line.


def _around(decision: Decision, now: Instant) -> tuple[str, str]:
    """The line before and after the title of the subject."""
    act = decision.act
    verb = "untaint" if isinstance(act, Taint) and act.value is None else type(act).__name__.lower()
    if isinstance(act, Hold):
        parts = [f"until {_relative(act.until, now)}"] if act.until is not None else []
    else:
        parts = [*_data(act, now), *_preconditions(act)]
    if decision.after:
        parts.append(f"after {','.join(each.title for each in decision.after)}")
    would = "would " if decision.would else ""
    return f"{would}{verb} ", "".join(f" {part}" for part in parts) + f": {decision.reason.code}"


def _preconditions(act: Action) -> Iterator[str]:
    """The preconditions that say what an action does."""
    if act.presumes.absent:
        yield "if absent"
    if act.presumes.empty:
        yield "if empty"
    if act.presumes.gone is not None:
        yield f"if gone {act.presumes.gone.title}"


def _data(act: Action, now: Instant) -> Iterator[str]:
    match act:
        case Apply():
            yield from _of_apply(act)
        case Taint():
            yield from _of_taint(act, now)
        case Evict():
            yield from _of_eviction(act)
        case Annotate(annotations=pairs) | Label(labels=pairs):
            yield from _pairs(pairs, now)
        case Ungate():
            yield _text(act.gate)
            yield from _option("to", act.node)
        case Resize():
            yield from (f"{_text(name)}={_quantity(amount)}" for name, amount in act.resources)
        case Bind():
            yield from _option("to", act.node)
            yield from _option("leases", *(each.name for each in act.leases))
            yield from _pairs(act.annotations, now)


def _of_taint(act: Taint, now: Instant) -> Iterator[str]:
    value = f"={_value(act.key, act.value, now)}" if act.value else ""
    yield f"{_text(act.key)}{value}:{act.effect}"
    if act.instead_of:
        yield f"instead of {act.instead_of}"
    if act.labels:
        yield "label"
        yield from _pairs(act.labels, now)


def _of_eviction(act: Evict) -> Iterator[str]:
    yield from _option("to", act.destination)
    yield f"grace {act.grace_seconds}s"
    yield from _option("gang", act.gang)
    for other in act.others:
        yield f"with {other.ref.title}"
        yield from _option("to", other.destination)
        yield f"grace {other.grace_seconds}s"


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Manifest(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


def _of_apply(act: Apply) -> Iterator[str]:
    """The data of a smart pod is the request in its annotation."""
    if act.force:
        yield "by force"
    manifest = json_value(act.manifest, _Manifest) if names.ORIGINAL_REQUEST in act.manifest else None
    text = manifest.metadata.annotations.get(names.ORIGINAL_REQUEST, "") if manifest is not None else ""
    request = json_value(text, CapacityRequest)
    if request is not None:
        offering = (request.instance_type, request.capacity_type, request.zone)
        yield f"offering {'/'.join(map(_text, offering)).rstrip('/')}"
        yield f"gpus {request.count}"
        yield from _option("for", *(request.pods or (request.key,)))


def _pairs(pairs: Sequence[tuple[str, str | None]], now: Instant) -> Iterator[str]:
    """Labels or annotations as for kubectl: KEY=VALUE, or KEY- for a removal."""
    for key, value in pairs:
        yield f"{_text(key)}-" if value is None else f"{_text(key)}={_value(key, value, now)}"


def _option(word: str, *values: str) -> Iterator[str]:
    """The word and its values; nothing without a value."""
    if any(values):
        yield f"{word} {','.join(map(_text, values))}"


# --- Values.

_BARE = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]*[A-Za-z0-9_])?")

# How to read the times in reconciler's own taints and annotations. Only a time in its canonical form is shown as one.
_TIMES: dict[str, tuple[Callable[[str], Instant | None], Callable[[Instant], str]]] = {
    **dict.fromkeys(
        (names.DELETION_TIME, names.DRAIN_CANDIDATE, names.DRAINING, names.PODS_WOKEN_AT, names.SINCE),
        (unix_seconds, lambda at: str(at // 1_000)),
    ),
    names.EVICT_AT: (moment, timestamp),
}


def _value(key: str, value: str, now: Instant) -> str:
    """A value of a taint, label or annotation."""
    if key in _TIMES:
        parse, written = _TIMES[key]
        at = parse(value)
        if at is not None and written(at) == value:
            return _relative(at, now)
    return _text(value)


def _relative(at: Instant, now: Instant) -> str:
    """+600s, -60s. Taints have whole seconds, so the fraction of `now` is left out as well."""
    return f"{at // 1_000 - now // 1_000:+}s"


def _text(value: str) -> str:
    """The text itself, or a JSON string. A text never looks like a time, which begins with a sign."""
    return value if not value or _BARE.fullmatch(value) else msgspec.json.encode(value).decode()


def _quantity(thousandths: int) -> str:
    """500 -> 500m, 8000 -> 8."""
    whole, rest = divmod(thousandths, 1_000)
    return f"{thousandths}m" if rest else str(whole)
