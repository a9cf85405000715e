"""Each code that holds typed facts: its sentence says all of them, and it is read back as it was written."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from reconciler.fleet.obstacles import OBSTACLES, OtherObstacle
from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit
from reconciler.model.plan.decision import CodeFacts, Reason, Ref
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.refusals import (
    ClaimState,
    ClaimUnseen,
    ClaimUnusable,
    NodePoolAbsent,
    NoFit,
    NoRoom,
    NoStock,
    NotServed,
    PolicySuspended,
    PoolFrozen,
    PoolObserved,
    PoolRefusal,
    PoolRefusals,
    Unserved,
)
from reconciler.plan.drain.codes import words as drain_words
from reconciler.plan.guards import reasons as guard_words
from reconciler.plan.guards.frozen import Freeze, FreezeScope
from reconciler.plan.guards.observing import Observation
from reconciler.plan.manifests import reasons as manifest_words
from reconciler.plan.pressure.reasons import PlacesRuledOut, PressedResource
from reconciler.plan.reason_catalog import REASONS, decoded
from reconciler.plan.scaling.marks import MarkTime
from reconciler.plan.scaling.reasons import ForPods, HeldWhile, KeptWhile, NextWindow, SizedBy
from reconciler.plan.scaling.size import Claimants, Growth, SizeReason
from reconciler.plan.smart_pods.reasons import Unbought
from reconciler.plan.status.reasons import ProblemCount
from reconciler.report.plans.plan_json import facts_document
from reconciler.report.sentences import PARTS, WORDS, fact_words, guarded_sentence, sentence
from tests.unit.plan.some_reasons import reason_of

TYPED = REASONS
POOL, PROVISIONER = Ref("GpuPool", "", "a100"), Ref("NodeProvisioner", "", "a100")
LIMIT = CapacityLimit("limits", "a100", "nvidia.com/gpu", "16")
SPOT = LaunchOption("p4d", "spot", "eu-1a")
UNREAD = Unread("pods", "refused")
FACTS: tuple[tuple[Any, str], ...] = (
    (PressedResource("cpu", 1_500, 500, 0), "cpu: 1500m above its watermark and 500m requested and not there"),
    (PressedResource("memory", 3 * 2**30, 0, 0), "memory: 3Gi above its watermark"),
    (PlacesRuledOut(above=1, without=2), "1 above the watermark, 2 without a PressurePolicy"),
    (PlacesRuledOut(), "there is no other node"),
    (LaunchOption("p4d"), "p4d"),
    (LaunchOption("p4d", zone="eu-1a"), "p4d (in eu-1a)"),
    (SPOT, "p4d (spot, in eu-1a)"),
    ((SPOT, LaunchOption("p5", "spot")), "p4d (spot, in eu-1a), p5 (spot)"),
    (LIMIT, "limits.nvidia.com/gpu 16 of GpuPool/a100"),
    (CapacityLimit("maxSize", "a100", amount="4"), "maxSize 4 of NodeProvisioner/a100"),
    (CapacityLimit("instanceTypes", "a100"), "GpuPool/a100 declares no instance type"),
    (PolicySuspended(PROVISIONER), "NodeProvisioner/a100 is suspended"),
    (
        PoolFrozen(Freeze(FreezeScope("pool", "a100"), "soon", "maintenance")),
        "pool a100 is frozen until soon (maintenance)",
    ),
    (NodePoolAbsent(Ref("NodePool", "", "a100")), "NodePool/a100 does not exist yet"),
    (PoolObserved(Observation("a100", by_mode=True)), "GpuPool/a100 is in mode Observe"),
    (PoolRefusal("a", NoRoom(LIMIT)), "a: limits.nvidia.com/gpu 16 of GpuPool/a100 allows no more nodes"),
    (PoolRefusal("a", NoStock((SPOT,))), "a: no machine is available: tried p4d (spot, in eu-1a)"),
    (PoolRefusal("a", NoFit(OtherObstacle("8 asked"))), "a: the pod does not fit on a new node (8 asked)"),
    (PoolRefusal("a", NoFit(OtherObstacle("8 asked"), is_packed=True)), "a: 8 asked"),
    (PoolRefusal("a", PolicySuspended(PROVISIONER)), "a: NodeProvisioner/a100 is suspended"),
    (PoolRefusals(), "no GpuPool is declared"),
    (
        PoolRefusals((PoolRefusal("a", NotServed(Unserved.NO_INSTANCE_TYPE)),), more=2),
        "a: the pool has no instance type; nor can 2 more pools",
    ),
    (ClaimUnusable(ClaimState.SUSPENDED), "the claim is suspended"),
    (ClaimUnseen(UNREAD), "pods: refused"),
    (UNREAD, "pods: refused"),
    (SizeReason(80), "the pool has no GPUs"),
    (SizeReason(80, 805), "80.5 % of the GPUs are in use, and the minimum is 80 %"),
    (
        SizeReason(80, 667, 4),
        "66.7 % of the GPUs are in use; for the minimum of 80 %, the pool may have at most 4 nodes",
    ),
    (
        SizeReason(80, 9, 4, 6),
        (
            "0.9 % of the GPUs are in use; for the minimum of 80 %, the pool may have at most 4 nodes, but 6 nodes are "
            "busy or kept empty"
        ),
    ),
    (SizeReason(80, bound="minSize", bound_nodes=2), "the pool has no GPUs; minSize requires 2 nodes"),
    (
        SizeReason(80, 1000, bound="maxSize", bound_nodes=2),
        "100.0 % of the GPUs are in use, and the minimum is 80 %; maxSize allows 2 nodes",
    ),
    (Growth(), "no node is bought"),
    (Growth(kept=1, arriving=2), "1 marked and kept for the pods, 2 in flight"),
    (Growth(asked=3, bought=4, warm=5), "3 requested by smart pods, 4 to be bought, 5 to be bought as warm nodes"),
    (Claimants(), "pods"),
    (Claimants(1), "1 pod"),
    (Claimants(are_evicted=True), "recently evicted pods"),
    (NextWindow(), "a window is added"),
    (NextWindow(Instant(1_793_000_000_000)), "2026-10-26T07:33:20Z"),
    (MarkTime("soon"), "soon"),
    (MarkTime("1793000000", Instant(1_793_000_000_000)), "2026-10-26T07:33:20Z"),
    (ForPods(2), "for 2 pods"),
    (SizedBy("warmNodes", 2), "warmNodes is 2"),
    (HeldWhile((KeptWhile.SUSPENDED, KeptWhile.FROZEN)), "its pool is suspended and a freeze is active"),
    (Unbought.NO_CLAIM, "no NodeClaim yet"),
    (ProblemCount(0), "no problem"),
    (ProblemCount(2), "2 problems"),
)


def _cases() -> Iterator[Any]:
    """Of each code a reason; and one for each type that one of its facts may have."""
    for code, kind in TYPED.items():
        yield pytest.param(reason_of(code), id=code)
        for name, hint in get_type_hints(kind).items():
            for fact, words in FACTS:
                if type(fact) in get_args(hint) or type(fact) is hint:
                    known = {name: (fact,) if get_origin(hint) is tuple else fact}
                    yield pytest.param(reason_of(code, **known), id=f"{code} with {words}")


@pytest.mark.parametrize("reason", tuple(_cases()))
def test_a_reason_is_read_back_as_it_was_written_and_says_what_it_holds(reason: Reason) -> None:
    again = decoded(msgspec.json.encode(reason), Reason)
    assert again == reason
    assert hash(again) == hash(reason)
    for words in (sentence(reason), guarded_sentence(reason)):
        assert not re.search(r"[{}<>]|\w+\(\w+=", words), "no fact is left without words"
    msgspec.json.encode(facts_document(reason.facts))


@pytest.mark.parametrize("code", TYPED)
def test_a_template_names_facts_of_its_code(code: str) -> None:
    kind: Any = TYPED[code]
    assert issubclass(kind, CodeFacts)
    named = set(re.findall(r"\{(\w+)", f"{kind.template} {kind.while_held}"))
    assert named <= set(kind.__struct_fields__) | set(PARTS.get(kind, ()))


@pytest.mark.parametrize(("fact", "words"), FACTS, ids=[words for _, words in FACTS])
def test_a_fact_has_its_words_in_one_place(fact: Any, words: str) -> None:
    assert fact_words(fact) == words


SHOWN_ELSEWHERE = frozenset(
    {*drain_words.WORDS, *guard_words.WORDS, *manifest_words.WORDS, *OBSTACLES.values()}
)  # by golden tables


def test_each_type_of_fact_that_has_words_is_among_these() -> None:
    shown = {type(fact) for fact, _ in FACTS} | {
        type(each) for fact, _ in FACTS if type(fact) is tuple for each in fact
    }
    assert set(WORDS) - SHOWN_ELSEWHERE <= shown
