"""Leases that accompany a Binding: they are acquired before it, and released when it definitely failed.

Theory of operation. The holder of a Lease is the uid of a pod, so several binders of one pod (two replicas, or a retry
of the scheduler) share its Leases. A binder that failed must not delete a Lease that another binder relies on. So

- whoever finds a Lease that its pod holds already adopts the Lease by a write, after the read of the pod;
- whoever releases a Lease remembers its resourceVersion first, then annotates the unbound pod, and deletes only that
  version. The annotation makes each Binding fail that was prepared by an earlier read of the pod. A Binding that was
  prepared later has adopted the Lease later, so the Lease has another version and stays.

The planner releases Leases of dead binders by the same rule (plan/gpu/). Leases are acquired in sorted order, so that
two pods with the same wish do not each hold half of the GPUs.
"""

import msgspec

from reconciler.kube.api_server import MERGE_PATCH, ApiRequest, ApiResponse
from reconciler.kube.apply.fenced_writer import FencedWriter, error_text
from reconciler.kube.apply.verbs import deletion, folder_of, kind_of, path_of
from reconciler.model import names
from reconciler.model.parsers import natural
from reconciler.model.plan.decision import Bind, LentDevice, Ref
from reconciler.protocol.preconditions import (
    HELD,
    Object,
    WriteResult,
    adopted_lease,
    lent_to_another,
    new_lease,
    node_of,
    text_at,
)


class _Held(msgspec.Struct, frozen=True):
    """A Lease as this binder left it; without a version if the answer was lost."""

    ref: Ref
    uid: str = ""
    version: str = ""


class LeaseBinding:
    """The Leases of one pod. Owner of the list of those that this binder wrote. Methods raise Unreachable, NotSeen and
    FenceFell.
    """

    def __init__(self, pod: Ref, act: Bind, namespace: str, pen: FencedWriter) -> None:
        self._pod, self._act, self._namespace, self._pen = pod, act, namespace, pen
        self._held: dict[Ref, _Held] = {}

    def take(self, pod: Object, known_node: Object | None = None) -> WriteResult | None:
        """Why the Leases cannot be acquired; None if the pod holds all.

        `known_node`: the owner of the Leases, as observed. If the node has been replaced since, Kubernetes deletes the
        Leases, as it does if the node is replaced right after a read; the annotation of the pod still names its GPUs.
        """
        if not self._act.leases:
            return None
        node = known_node or self._pen.look(Ref("Node", "", self._act.node))
        if node is None:
            return WriteResult("stale", f"Node/{self._act.node} no longer exists")
        for device in sorted(self._act.leases):
            if why := self._take(device, pod, node):
                return why
        return None

    def _take(self, device: LentDevice, pod: Object, node: Object) -> WriteResult | None:
        ref = Ref("Lease", self._namespace, device.name)
        self._held[ref] = _Held(ref)  # recorded before the request: if the answer is lost, the Lease may be held
        body = new_lease(device, self._namespace, pod, node)
        answer = self._pen.send(ApiRequest("POST", folder_of(kind_of(ref), ref.namespace), msgspec.json.encode(body)))
        if answer.status == 409:
            found = self._pen.look(ref)
            holder = text_at(found or {}, HELD)
            if found is None or holder != pod["metadata"]["uid"]:
                del self._held[ref]
                return WriteResult("stale", lent_to_another(ref.title, holder))
            patch = msgspec.json.encode(adopted_lease(found))
            answer = self._pen.send(ApiRequest("PATCH", path_of(ref), patch, MERGE_PATCH))
        if answer.status < 300:
            metadata = msgspec.json.decode(answer.body)["metadata"]
            self._held[ref] = _Held(ref, metadata["uid"], metadata["resourceVersion"])
            return None
        del self._held[ref]
        is_passing = answer.status >= 429 or answer.status == 409
        return WriteResult("retry" if is_passing else "refused", error_text(answer))

    def give_back(self) -> None:
        """Releases the Leases that this binder acquired, unless the pod runs on the node after all."""
        known = [each for each in self._held.values() if each.version]
        if not known or not self._is_free_of_bindings():
            return
        for each in known:
            self._pen.send(deletion(each.ref, {"uid": each.uid, "resourceVersion": each.version}))
            del self._held[each.ref]

    def _is_free_of_bindings(self) -> bool:
        """Whether no Binding to the node can take effect that was prepared before now."""
        for _ in range(_TRIES):
            pod = self._pen.look(self._pod)
            if pod is None or pod["metadata"]["uid"] != self._pod.uid:
                return True
            if node := node_of(pod):
                return node != self._act.node
            answer = self._annotate(pod)
            if answer.status < 300:
                return True
            if answer.status not in {404, 409}:
                return False
        return False

    def _annotate(self, pod: Object) -> ApiResponse:
        latest = max(natural(each.version) or 0 for each in self._held.values())
        metadata = {
            "resourceVersion": pod["metadata"]["resourceVersion"],
            "annotations": {names.RELEASING: f"{self._act.node}@{latest}"},
        }
        patch = msgspec.json.encode({"metadata": metadata})
        return self._pen.send(ApiRequest("PATCH", path_of(self._pod), patch, MERGE_PATCH))


_TRIES = 3  # the scheduler and others write the status of a waiting pod
