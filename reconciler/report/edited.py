"""What an edit changes in an object of the cluster, field by field, in the words of YAML."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.action import Apply, Hold, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.manifests.compare import compare
from reconciler.plan.manifests.wanted_manifest import wish_of

_WORD = re.compile(r"[A-Za-z0-9_-]+")


class Edited(msgspec.Struct, frozen=True):
    """A field as it was and as it will be; of a list, one item that goes or comes."""

    path: str
    before: str | None
    after: str | None

    @property
    def words(self) -> str:
        """spec.limits.nodes: 8 -> 10, spec.template.spec.taints: + {effect: NoSchedule, key: dedicated}."""
        if self.before is None:
            return f"{self.path}: + {self.after}"
        if self.after is None:
            return f"{self.path}: - {self.before}"
        return f"{self.path}: {self.before} -> {self.after}"


def edited(decision: Decision, inputs: Inputs) -> tuple[Edited, ...]:
    """Of an object that is there already, whether it is edited or held; nothing for any other decision."""
    live = _live(decision.subject, inputs.observed) if _edits(decision) else None
    wished = _wished(decision, inputs, live) if live is not None else None
    if live is None or wished is None:
        return ()
    changes = compare(live, wished).changes
    return tuple(each for change in changes for each in _items(change.path, change.before, change.after))


def _edits(decision: Decision) -> bool:
    """Whether it is about an object as a whole: nodes and pods are acted on one by one."""
    return isinstance(decision.act, Apply | Hold) and decision.subject.kind not in {"Node", "Pod"}


def _wished(decision: Decision, inputs: Inputs, live: Unstructured) -> dict[str, Any] | None:
    """The manifest that is applied, or that would be if nothing held it."""
    if isinstance(decision.act, Apply):
        applied: dict[str, Any] = msgspec.json.decode(decision.act.manifest)
        return applied
    subject, desired = decision.subject, inputs.desired
    same = (subject.kind, subject.namespace, subject.name)
    manifest = next((each for each in desired.manifests if (each.kind, each.namespace, each.name) == same), None)
    if manifest is None:
        return None
    pool = desired.pool(manifest.pool)
    is_adopted = not live.is_ours and pool is not None and pool.spec.adopt
    return wish_of(manifest, live, desired.environment, adopting=is_adopted).body


def _live(subject: Ref, observed: Observed) -> Unstructured | None:
    same = (subject.kind, subject.namespace, subject.name)
    objects = (*observed.node_pools, *observed.kept)
    return next((each for each in objects if (each.kind, each.metadata.namespace, each.name) == same), None)


def _items(path: str, before: str | None, after: str | None) -> Iterator[Edited]:
    was, will = (None if text is None else msgspec.json.decode(text) for text in (before, after))
    yield from _parts(path, was, will)


def _parts(path: str, was: Any, will: Any) -> Iterator[Edited]:
    """Of a map each key that differs, of a list each item that goes or comes; None is where nothing is said."""
    if isinstance(was, dict) and isinstance(will, dict):
        for key in sorted(was.keys() | will.keys()):
            if was.get(key) != will.get(key):
                yield from _parts(_below(path, key), was.get(key), will.get(key))
        return
    if not isinstance(was, list) and not isinstance(will, list):
        yield Edited(path, None if was is None else flow(was), None if will is None else flow(will))
        return
    was, will = (each if isinstance(each, list) else [] for each in (was, will))
    goes = [each for each in was if each not in will]
    comes = [each for each in will if each not in was]
    yield from (Edited(path, flow(each), None) for each in goes)
    yield from (Edited(path, None, flow(each)) for each in comes)
    if not goes and not comes:
        yield Edited(path, flow(was), flow(will))


def _below(path: str, key: str) -> str:
    """spec.limits.cpu, spec.limits[nvidia.com/gpu]."""
    return f"{path}.{key}" if _WORD.fullmatch(key) else f"{path}[{key}]"


def flow(value: Any) -> str:
    """As people write it on one line: {key: dedicated, effect: NoSchedule}."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
