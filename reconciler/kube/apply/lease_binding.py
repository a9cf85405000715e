"""Leases that go with a Binding. Owner of which were taken for one pod, so that they can be given back."""

import msgspec

from reconciler.kube.api_server import ApiRequest
from reconciler.kube.apply.fenced_writer import FencedWriter
from reconciler.kube.apply.resource_paths import folder_of, kind_of, path_of
from reconciler.kube.apply.responses import error_text
from reconciler.model.plan.action import Bind, Ref
from reconciler.protocol.lease_binding import HELD, lease, lent_to_another
from reconciler.protocol.preconditions import Object, WriteResult, text_at


class LeaseBinding:
    """Taken in sorted order, so that two who want the same never hold half each for long."""

    def __init__(self, act: Bind, namespace: str, pen: FencedWriter) -> None:
        self._act, self._namespace, self._pen = act, namespace, pen
        self._holder = ""
        self._taken: list[Ref] = []

    def take(self, pod: Object) -> WriteResult | None:
        """Why it can't be had; None where all are held by the pod. Raises Unreachable, NotSeen and FenceFell."""
        self._holder = pod["metadata"]["uid"]
        node = self._pen.look(Ref("Node", "", self._act.node))
        if node is None:
            return WriteResult("stale", f"Node/{self._act.node} is not there any more")
        for name in sorted(self._act.leases):
            ref = Ref("Lease", self._namespace, name)
            if why := self._take(ref, lease(name, self._namespace, pod, node)):
                return why
        return None

    def give_back(self) -> None:
        """Those that were taken here. Raises Unreachable, NotSeen and FenceFell."""
        while self._taken:
            ref = self._taken.pop()
            found = self._pen.look(ref)
            if found is not None and text_at(found, HELD) == self._holder:
                preconditions = {
                    "uid": found["metadata"]["uid"],
                    "resourceVersion": found["metadata"]["resourceVersion"],
                }
                options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
                self._pen.send(ApiRequest("DELETE", path_of(ref), msgspec.json.encode(options)))

    def _take(self, ref: Ref, manifest: Object) -> WriteResult | None:
        found = self._pen.look(ref)
        if found is None:
            # An answer that is lost on the way leaves it taken: so it is noted first.
            self._taken.append(ref)
            body = msgspec.json.encode(manifest)
            answer = self._pen.send(ApiRequest("POST", folder_of(kind_of(ref), ref.namespace), body))
            if answer.status < 300:
                return None
            if answer.status != 409:
                return WriteResult("retry" if answer.status >= 429 else "refused", error_text(answer))
            found = self._pen.look(ref) or {}
        holder = text_at(found, HELD)
        return None if holder == self._holder else WriteResult("stale", lent_to_another(ref.title, holder))
