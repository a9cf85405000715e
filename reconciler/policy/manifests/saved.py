"""Checks manifests from a saved plan as strictly as rendered ones.

A saved plan contains rendered manifests, and anyone may have edited the file since.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model.bundle import Rendering
from reconciler.model.desired import Desired, Manifest, SmartPod
from reconciler.model.manifest_rules import SMART_PODS, YIELDED
from reconciler.model.problem import Problem
from reconciler.policy.manifests.check import MANIFEST, Yielded, check
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.manifests.render import clashes, fights, misnamed, orders, problem_for_pool, shared_manifests
from reconciler.policy.manifests.smart_pods import pod_orders, smart_pod_problems

_SAVED = Rendering()  # template lines are unknown


def check_saved(wish: Desired, schema: Structural | None) -> list[Problem]:
    """All problems of the manifests and smart pods of a Desired read from a file."""
    ordered = sorted(wish.manifests, key=lambda each: (each.kind, each.namespace, each.name, each.pool))
    return [*_of_templates(wish, schema), *_of_all_pools(wish), *clashes(ordered), *_of_smart_pods(wish)]


def _of_templates(wish: Desired, schema: Structural | None) -> Iterator[Problem]:
    for order in orders(wish):
        yielded = [each for each in wish.manifests if each.pool == order.pool.name]
        documents = [_document(each) for each in yielded]
        problems = check(_SAVED, documents, schema)
        problems = problems or [*misnamed(order, yielded), *fights(wish, order, documents, yielded)]
        yield from (problem_for_pool(order, each) for each in problems)


def _of_all_pools(wish: Desired) -> Iterator[Problem]:
    """A manifest for no pool of the Desired must be one of the shared manifests."""
    pools = {each.name for each in wish.pools}
    shared = {(each.kind, each.namespace, each.name, each.body) for each in shared_manifests(wish)}
    for each in wish.manifests:
        if each.pool not in pools and (each.pool or (each.kind, each.namespace, each.name, each.body) not in shared):
            text = f"{each.kind}/{each.name} belongs to no pool of these policies, and is no shared object"
            yield _problem(text)


def _of_smart_pods(wish: Desired) -> Iterator[Problem]:
    requested = {(order.pool.name, order.instance_type): order for order in pod_orders(wish)}
    for each in wish.smart_pods:
        order = requested.pop((each.pool, each.instance_type), None)
        if order is None:
            yield _problem(f"a smart pod for {each.instance_type} of GpuPool/{each.pool} is unexpected or duplicated")
            continue
        documents = [_document(each)]
        problems = check(_SAVED, documents, None, YIELDED | SMART_PODS) or list(
            smart_pod_problems(order, _SAVED, documents)
        )
        yield from (problem_for_pool(order, problem) for problem in problems)


def _document(each: Manifest | SmartPod) -> Yielded:
    """An unreadable document becomes a non-map value, which is then reported as such."""
    try:
        data = msgspec.json.decode(each.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        data = None
    return Yielded(data, lambda _: 0)


def _problem(sentence: str) -> Problem:
    return Problem("", 0, 0, MANIFEST, sentence, "create a new plan, and review it")
