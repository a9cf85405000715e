"""Edits of objects by people and other tools in a play, as an actor: owner of the edits to undo."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object
from reconciler.report.wording import counted
from reconciler.simulate.objects import declared_pool_of, is_leaving, labels_of, ref_of, taints_of
from reconciler.simulate.runner.faults import Tell, repeat
from reconciler.simulate.scenario.spec import Scenario, ScenarioEdit
from reconciler.simulate.stage import Stage
from reconciler.simulate.workloads import budget_of

SOMEBODY = "somebody"  # the field manager


class Edits:
    """Applies each edit at its time, to randomly chosen existing objects."""

    def __init__(self, scenario: Scenario, tell: Tell) -> None:
        self._edits = scenario.edits
        self._workloads = {each.name: each for each in scenario.workloads}
        self._tell = tell

    def start(self, stage: Stage) -> None:
        self._stage = stage
        for number, edit in enumerate(self._edits):
            repeat(stage, edit, f"edit {edit.kind}", partial(self._come, number, edit))

    def _come(self, number: int, edit: ScenarioEdit) -> Callable[[], None] | None:
        """Returns how to undo the edit, if it had an effect."""
        refs = self._chosen(number, edit)
        back = [self._done(edit, each) for each in refs]
        words = ", ".join(_words(edit))
        text = f"{_subjects(edit, refs)}: {words}, by a user"
        if refs or edit.every is None:
            self._tell(self._stage.now, text if refs else f"no effect, since there was {_nobody(edit)}: {words}")
        return partial(self._take_back, edit, back) if back else None

    def _chosen(self, number: int, edit: ScenarioEdit) -> list[Ref]:
        if edit.kind == "PodDisruptionBudget":
            budget = Ref(edit.kind, self._workloads[edit.name].namespace, edit.name)
            is_made = edit.max_unavailable is not None  # if there is none
            return [budget] if is_made or self._stage.world.get(budget) is not None else []
        if edit.name and edit.kind != "Pod":
            named = Ref(edit.kind, "", edit.name)
            return [named] if self._stage.world.get(named) is not None else []
        refs = [ref_of(body) for body in self._stage.world.of(edit.kind) if _is_meant(body, edit)]
        match edit.order:
            case "Oldest":
                return refs[: edit.count]
            case "Youngest":
                return refs[-edit.count :]
        chance = self._stage.engine.stream(f"edit/{number}")
        return sorted(chance.sample(sorted(refs), min(edit.count, len(refs))))

    def _done(self, edit: ScenarioEdit, ref: Ref) -> tuple[Ref, Object | None]:
        """Applies the edit; returns its inverse, or None if the object is removed."""
        world = self._stage.world
        if edit.deleted:
            world.delete(ref, SOMEBODY)
            return ref, {}
        if edit.max_unavailable is not None:
            found = world.get(ref)
            workload = msgspec.structs.replace(self._workloads[edit.name], max_unavailable=edit.max_unavailable)
            if found is None:
                world.put(budget_of(workload), SOMEBODY)
                return ref, None
            world.edit(ref, {"spec": {"maxUnavailable": edit.max_unavailable}}, SOMEBODY)
            return ref, {"spec": {"maxUnavailable": found["spec"].get("maxUnavailable")}}
        body = world.get(ref) or {}
        world.edit(ref, _patch(edit, body), SOMEBODY)
        return ref, _back(edit, body)

    def _take_back(self, edit: ScenarioEdit, done: Sequence[tuple[Ref, Object | None]]) -> None:
        left = [(ref, back) for ref, back in done if self._stage.world.get(ref) is not None]
        for ref, back in left:
            if back is None:
                self._stage.world.delete(ref, SOMEBODY)
            else:
                self._stage.world.edit(ref, _without_taints(edit, back, self._stage.world.get(ref)), SOMEBODY)
        if left:
            text = f"{_subjects(edit, [ref for ref, _ in left])}: {', '.join(_words(edit))}, undone"
            self._tell(self._stage.now, text)


def _is_meant(body: Object, edit: ScenarioEdit) -> bool:
    metadata = body["metadata"]
    is_named = edit.name in {"", metadata["name"]} and edit.pool in {"", declared_pool_of(body)}
    return is_named and not is_leaving(body) and edit.having.items() <= labels_of(body).items()


def _patch(edit: ScenarioEdit, body: Object) -> Object:
    metadata = {"labels": dict(edit.labels), "annotations": dict(edit.annotations)}
    spec: Object = {}
    if edit.unschedulable is not None:
        spec["unschedulable"] = edit.unschedulable
    if edit.taints:
        added = [{"key": each.key, "value": each.value, "effect": each.effect} for each in edit.taints]
        keys = {(each["key"], each["effect"]) for each in added}
        spec["taints"] = [*(each for each in taints_of(body) if (each["key"], each["effect"]) not in keys), *added]
    if edit.lifts:
        gates = (body.get("spec") or {}).get("schedulingGates") or []
        spec["schedulingGates"] = [each for each in gates if each["name"] != edit.lifts]
    found = {"metadata": {key: value for key, value in metadata.items() if value}, "spec": spec}
    return {key: value for key, value in found.items() if value}


def _back(edit: ScenarioEdit, body: Object) -> Object:
    """The previous values, except taints, since others may have changed meanwhile."""
    metadata = body.get("metadata") or {}
    before = {
        key: {name: (metadata.get(key) or {}).get(name) for name in set_there}
        for key, set_there in (("labels", edit.labels), ("annotations", edit.annotations))
        if set_there
    }
    result: Object = {"metadata": before} if before else {}
    if edit.unschedulable is not None:
        result["spec"] = {"unschedulable": (body.get("spec") or {}).get("unschedulable")}
    return result


def _without_taints(edit: ScenarioEdit, back: Object, body: Object | None) -> Object:
    """The inverse for the object's current state."""
    if not edit.taints:
        return back
    added = {(each.key, each.effect) for each in edit.taints}
    kept = [each for each in taints_of(body) if (each["key"], each["effect"]) not in added]
    return {**back, "spec": {**(back.get("spec") or {}), "taints": kept}}


def _subjects(edit: ScenarioEdit, refs: Sequence[Ref]) -> str:
    return refs[0].title if len(refs) == 1 else counted(len(refs), edit.kind)


def _nobody(edit: ScenarioEdit) -> str:
    return f"no {edit.kind}" + (f" {edit.name}" if edit.name else f" of {edit.pool}" if edit.pool else "")


def _words(edit: ScenarioEdit) -> Iterator[str]:
    if edit.deleted:
        yield "deleted"
    if edit.max_unavailable is not None:
        yield f"maxUnavailable {edit.max_unavailable}"
    if edit.unschedulable is not None:
        yield "cordoned" if edit.unschedulable else "uncordoned"
    if edit.lifts:
        yield f"gate {edit.lifts} removed"
    yield from (f"taint {each.key}={each.value}:{each.effect}" for each in edit.taints)
    for sort, found in (("label", edit.labels), ("annotation", edit.annotations)):
        yield from (f"{sort} {key}={value}" for key, value in sorted(found.items()))
