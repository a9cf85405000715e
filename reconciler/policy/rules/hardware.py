"""Instance types that are known, and the GPUs in them: a pool that asks for others would never get a node."""

import difflib
import re
from collections.abc import Iterator

from reconciler.model.problem import Problem
from reconciler.policy.rules.context import RuleContext

# Model, GPUs of one node, and the instance types that have them.
_GPU_TYPES = (
    ("v100", 1, "p3.2xlarge"),
    ("v100", 4, "p3.8xlarge"),
    ("v100", 8, "p3.16xlarge p3dn.24xlarge"),
    ("a100", 8, "p4d.24xlarge p4de.24xlarge"),
    ("h100", 1, "p5.4xlarge"),
    ("h100", 8, "p5.48xlarge"),
    ("h200", 8, "p5e.48xlarge p5en.48xlarge"),
    ("b200", 8, "p6-b200.48xlarge"),
    ("t4", 1, "g4dn.xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.16xlarge"),
    ("t4", 4, "g4dn.12xlarge"),
    ("t4", 8, "g4dn.metal"),
    ("a10g", 1, "g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.16xlarge"),
    ("a10g", 4, "g5.12xlarge g5.24xlarge"),
    ("a10g", 8, "g5.48xlarge"),
    ("l4", 1, "g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.16xlarge"),
    ("l4", 4, "g6.12xlarge g6.24xlarge"),
    ("l4", 8, "g6.48xlarge"),
    ("l40s", 1, "g6e.xlarge g6e.2xlarge g6e.4xlarge g6e.8xlarge g6e.16xlarge"),
    ("l40s", 4, "g6e.12xlarge g6e.24xlarge"),
    ("l40s", 8, "g6e.48xlarge"),
    ("a100", 1, "a2-highgpu-1g a2-ultragpu-1g Standard_NC24ads_A100_v4"),
    ("a100", 2, "a2-highgpu-2g a2-ultragpu-2g Standard_NC48ads_A100_v4"),
    ("a100", 4, "a2-highgpu-4g a2-ultragpu-4g Standard_NC96ads_A100_v4"),
    ("a100", 8, "a2-highgpu-8g a2-ultragpu-8g Standard_ND96asr_v4 Standard_ND96amsr_A100_v4"),
    ("a100", 16, "a2-megagpu-16g"),
    ("h100", 8, "a3-highgpu-8g a3-megagpu-8g Standard_ND96isr_H100_v5"),
    ("h200", 8, "a3-ultragpu-8g Standard_ND96isr_H200_v5"),
    ("b200", 8, "a4-highgpu-8g"),
    ("l4", 1, "g2-standard-4 g2-standard-8 g2-standard-12 g2-standard-16 g2-standard-32"),
    ("l4", 2, "g2-standard-24"),
    ("l4", 4, "g2-standard-48"),
    ("l4", 8, "g2-standard-96"),
)
KNOWN = {name: (model, count) for model, count, names in _GPU_TYPES for name in names.split()}
# Families without GPUs.
_NO_GPU = re.compile(
    r"[cmrt][3-8][a-z]*\.([a-z]+|[0-9]+xlarge)(-[0-9]+xl)?"
    r"|(e2|n1|n2|n2d|c3|c4)-(standard|highmem|highcpu)-[0-9]+"
)
_LIKELY_TYPO = 0.85  # share of common characters; p5.48xlarge and p5e.48xlarge differ by less, and both are known


def gpus_of(instance_type: str) -> tuple[str, int] | None:
    """Model and number of its GPUs, where that is known."""
    return ("", 0) if _NO_GPU.fullmatch(instance_type) else KNOWN.get(instance_type)


def instance_types_carry_the_gpus(wish: RuleContext) -> Iterator[Problem]:
    """Each instance type of a pool that is known has the GPUs that the pool promises."""
    for pool in wish.desired.pools:
        wanted = pool.spec.devices
        for number, each in enumerate(pool.spec.instance_types):
            known = gpus_of(each.name)
            if known is None or (_same_model(wanted.model, known[0]) and wanted.count == known[1]):
                continue
            model, count = known
            has = f"has {count} {model}" if count else "has no GPU"
            text = f"{each.name} {has}, and the pool promises {wanted.count} {wanted.model}"
            remedy = "name another instance type, or correct devices"
            yield wish.problem(pool, f"spec.instanceTypes[{number}].name", ("RC307", text, remedy))


def instance_types_are_spelled_right(wish: RuleContext) -> Iterator[Problem]:
    """A name that is almost a known one is probably misspelled: Karpenter would never find such a machine."""
    for pool in wish.desired.pools:
        for number, each in enumerate(pool.spec.instance_types):
            if gpus_of(each.name) is not None:
                continue
            if close := difflib.get_close_matches(each.name, KNOWN, n=1, cutoff=_LIKELY_TYPO):
                text = f'"{each.name}" is no known instance type; did you mean "{close[0]}"?'
                remedy = f"write {close[0]}, or leave it if the cloud offers {each.name}"
                yield wish.warning(pool, f"spec.instanceTypes[{number}].name", ("RC312", text, remedy))


def instance_types_say_what_they_have(wish: RuleContext) -> Iterator[Problem]:
    """While no node of a type is alive, only its declared capacity says which pods fit on one."""
    for pool in wish.desired.pools:
        for number, each in enumerate(pool.spec.instance_types):
            missing = [name for name in ("cpu", "memory") if name not in each.capacity]
            if missing and not pool.spec.suspend:
                text = (
                    f"the capacity of {each.name} does not say its {' and '.join(missing)}: while no node of this type "
                    "runs, any request is taken to fit on one"
                )
                remedy = "add capacity: {cpu: ..., memory: ..., pods: ...}, as the cloud documents the type"
                yield wish.warning(pool, f"spec.instanceTypes[{number}]", ("RC313", text, remedy))


def drained_pools_have_more_than_one_gpu(wish: RuleContext) -> Iterator[Problem]:
    """A node of one GPU is empty or full, so that a threshold on its GPUs never selects a node with a GPU pod."""
    for drain in wish.desired.drains:
        if drain.spec.suspend or drain.spec.utilization_threshold_percent >= 100:
            continue
        for pool in wish.pools_named(drain.spec.pool_names):
            if pool.spec.devices.count == 1:
                text = (
                    f"nodes of GpuPool/{pool.name} have one GPU, which is in use or is not: at "
                    f"{drain.spec.utilization_threshold_percent} % no node with a GPU pod is ever drained"
                )
                remedy = "leave the pool out; empty nodes go by its NodeProvisioner or by this policy all the same"
                yield wish.warning(drain, "spec.poolNames", ("RC314", text, remedy))


def _same_model(wanted: str, known: str) -> bool:
    """a100 and a100-80gb are both an a100."""
    return bool(known) and wanted.split("-", maxsplit=1)[0] == known
