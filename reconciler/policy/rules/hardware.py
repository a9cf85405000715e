"""Instance types that are known, and the GPUs in them: a pool that asks for others would never get a node."""

import re
from collections.abc import Iterator

from reconciler.model.problem import Problem
from reconciler.policy.rules.wish import Wish

# Instance type (a pattern), model, GPUs. First match wins; what matches nothing is not known, and not judged.
KNOWN = tuple(
    (re.compile(pattern + "$"), model, count)
    for pattern, model, count in (
        (r"p3\.2xlarge", "v100", 1),
        (r"p3\.8xlarge", "v100", 4),
        (r"p3(\.16|dn\.24)xlarge", "v100", 8),
        (r"p4de?\.24xlarge", "a100", 8),
        (r"p5\.48xlarge", "h100", 8),
        (r"p5en?\.48xlarge", "h200", 8),
        (r"g4dn\.(|2|4|8|16)xlarge", "t4", 1),
        (r"g4dn\.12xlarge", "t4", 4),
        (r"g4dn\.metal", "t4", 8),
        (r"g5\.(|2|4|8|16)xlarge", "a10g", 1),
        (r"g5\.(12|24)xlarge", "a10g", 4),
        (r"g5\.48xlarge", "a10g", 8),
        (r"g6\.(|2|4|8|16)xlarge", "l4", 1),
        (r"g6\.(12|24)xlarge", "l4", 4),
        (r"g6\.48xlarge", "l4", 8),
        (r"g6e\.(|2|4|8|16)xlarge", "l40s", 1),
        (r"g6e\.(12|24)xlarge", "l40s", 4),
        (r"g6e\.48xlarge", "l40s", 8),
        (r"a2-(high|ultra)gpu-1g", "a100", 1),
        (r"a2-(high|ultra)gpu-2g", "a100", 2),
        (r"a2-(high|ultra)gpu-4g", "a100", 4),
        (r"a2-(high|ultra)gpu-8g", "a100", 8),
        (r"a2-megagpu-16g", "a100", 16),
        (r"a3-(high|mega)gpu-8g", "h100", 8),
        (r"g2-standard-(4|8|12|16|32)", "l4", 1),
        (r"g2-standard-24", "l4", 2),
        (r"g2-standard-48", "l4", 4),
        (r"g2-standard-96", "l4", 8),
        (r"Standard_ND96a(s|ms)r(_A100)?_v4", "a100", 8),
        (r"Standard_ND96isr_H100_v5", "h100", 8),
        (r"Standard_NC24ads_A100_v4", "a100", 1),
        (r"Standard_NC48ads_A100_v4", "a100", 2),
        (r"Standard_NC96ads_A100_v4", "a100", 4),
        (r"[cmrt][3-8][a-z]*\.([a-z]+|[0-9]+xlarge)(-[0-9]+xl)?", "", 0),
        (r"(e2|n1|n2|n2d|c3|c4)-(standard|highmem|highcpu)-[0-9]+", "", 0),
    )
)


def gpus_of(instance_type: str) -> tuple[str, int] | None:
    """Model and number of its GPUs, where that is known."""
    return next(((model, count) for pattern, model, count in KNOWN if pattern.match(instance_type)), None)


def instance_types_carry_the_gpus(wish: Wish) -> Iterator[Problem]:
    """Each instance type of a pool that is known has the GPUs that the pool promises."""
    for pool in wish.desired.pools:
        wanted = pool.spec.devices
        for number, each in enumerate(pool.spec.instance_types):
            known = gpus_of(each.name)
            if known is None or (_same_model(wanted.model, known[0]) and wanted.count == known[1]):
                continue
            model, count = known
            has = f"has {count} {model}" if count else "has no GPU"
            told = f"{each.name} {has}, and the pool promises {wanted.count} {wanted.model}"
            remedy = "name another instance type, or correct devices"
            yield wish.problem(pool, f"spec.instanceTypes[{number}].name", ("RC307", told, remedy))


def _same_model(wanted: str, known: str) -> bool:
    """a100 and a100-80gb are both an a100."""
    return bool(known) and wanted.split("-", maxsplit=1)[0] == known
