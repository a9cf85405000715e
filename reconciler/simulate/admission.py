"""The admission webhook of a simulated cluster: applies protocol/admission to new pods with a claim."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Ref
from reconciler.model.policy.gpu import GpuPool
from reconciler.protocol.admission.decision import Grounds, Refusal, decide
from reconciler.protocol.admission.review import PatchOperation, ReviewedPod, ReviewedSpec
from reconciler.protocol.preconditions import Object
from reconciler.report.admission_text import refusal_status
from reconciler.simulate.objects import ObjectStore, annotations_of
from reconciler.simulate.world import PodRefused


class SimulatedWebhook:
    """Called with each new pod. Raises PodRefused."""

    def __init__(self, objects: ObjectStore, pools: Callable[[], Sequence[Declared[GpuPool]]]) -> None:
        """`pools`: those of the policies in force."""
        self._objects = objects
        self._pools = pools

    def __call__(self, pod: Object) -> Object:
        annotations = annotations_of(pod)
        claim = annotations.get(names.CLAIM)
        if claim is None:
            return pod
        namespace = pod["metadata"].get("namespace", "")
        spec = msgspec.convert(pod.get("spec") or {}, ReviewedSpec)
        decision = decide(ReviewedPod(namespace, claim, frozenset(annotations), spec), self._grounds(namespace, claim))
        if isinstance(decision, Refusal):
            raise PodRefused(refusal_status(decision).message)
        return patched(pod, decision.patch)

    def _grounds(self, namespace: str, claim: str) -> Grounds:
        found = self._objects.get(Ref("GpuClaim", namespace, claim))
        return Grounds((found.get("spec") or {}) if found is not None else None, tuple(self._pools()), self._mapping())

    def _mapping(self) -> str:
        """The first DeviceClass that serves requests for nvidia.com/gpu."""
        mappings = (
            each["metadata"]["name"]
            for each in self._objects.of("DeviceClass")
            if (each.get("spec") or {}).get("extendedResourceName") == names.NVIDIA_GPU
        )
        return min(mappings, default="")


def patched(body: Object, patch: Iterable[PatchOperation]) -> Object:
    """The object after a JSON Patch of `add` and `replace` operations."""
    after: Object = msgspec.json.decode(msgspec.json.encode(body))
    for operation in patch:
        *parents, last = [each.replace("~1", "/").replace("~0", "~") for each in operation.path.split("/")[1:]]
        target: Any = after
        for key in parents:
            target = target[int(key)] if isinstance(target, list) else target[key]
        if not isinstance(target, list):
            target[last] = operation.value
        elif operation.op == "replace":
            target[int(last)] = operation.value
        else:
            target.insert(int(last), operation.value)
    return after
