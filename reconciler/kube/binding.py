"""Bindings of pods on behalf of the scheduler extender. Any replica binds: Leases and versions of objects arbitrate."""

import time

import msgspec

from reconciler.kube.api_server import Unreachable, Writer
from reconciler.kube.apply.execute import KnownObjects, WriteExecution
from reconciler.kube.apply.fenced_writer import Bucket, FencedWriter, NotSeen, WriteLimits, error_text
from reconciler.kube.decode import Undecodable, one
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Bind, Decision, Reason, Ref
from reconciler.plan.gpu.reasons import PLANNER, PodBound
from reconciler.ports import Unavailable
from reconciler.protocol.preconditions import Object, WriteResult

# The scheduler waits for the answer, and asks again after a failure.
LIMITS = WriteLimits(writes_per_second=2_000.0, burst=2_000, attempts=3, longest_wait_seconds=1.0, patience_seconds=8.0)
_PODS = next(each for each in RESOURCE_KINDS if each.field == "pods")


class _Anybody:
    """A Fence that every replica passes."""

    def holds(self) -> bool:
        return True


class BindResult(msgspec.Struct, frozen=True):
    """The result, and the seconds for the Leases and for the Binding after them."""

    written: WriteResult
    leases_seconds: float = 0.0
    binding_seconds: float = 0.0


class LivePod(msgspec.Struct, frozen=True):
    """A pod as the API server had it at one read."""

    pod: Pod
    body: Object


class PodBinder:
    """Thread-safe."""

    def __init__(self, server: Writer, namespace: str = names.LEASES_NAMESPACE, limits: WriteLimits = LIMITS) -> None:
        self._namespace = namespace
        self._pen = FencedWriter(server, Bucket(limits.writes_per_second, limits.burst), _Anybody(), limits)

    def read(self, ref: Ref) -> LivePod | None:
        """The pod as the API server has it now; None if there is no pod with this uid. Raises Unavailable."""
        try:
            found = self._pen.look(ref)
            pod: Pod | None = one(_PODS, msgspec.json.encode(found)) if found is not None else None
        except NotSeen as unseen:
            raise Unavailable(error_text(unseen.answer)) from None
        except (Unreachable, Undecodable) as error:
            raise Unavailable(str(error)) from error
        return LivePod(pod, found) if pod is not None and found is not None and pod.metadata.uid == ref.uid else None

    def bind(self, pod: Ref, bind: Bind, read: LivePod, node: Node | None = None) -> BindResult:
        """Acquire the Leases and bind the pod. `unknown`: the Binding may take effect later.

        `read`: the pod, read before the GPUs were chosen. `node`: as observed, to own the Leases; read if absent.
        """
        decision = Decision(PLANNER, pod, bind, Reason(PodBound(pod, bind.node)))
        owner = {"metadata": {"name": node.name, "uid": node.metadata.uid}} if node is not None else None
        execution = WriteExecution(decision, self._pen, self._namespace, KnownObjects(read.body, owner))
        began = time.monotonic()
        written, ended = execution.carry_out(), time.monotonic()
        lent_at = execution.lent_at if execution.lent_at is not None else ended
        return BindResult(written, lent_at - began, ended - lent_at)
