"""What was done and why, as Events on its subject, in plain words: best effort, never more than a bucket allows."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from reconciler.kube.api_server import Request, Unreachable, Writer
from reconciler.kube.apply.bucket import Bucket
from reconciler.kube.apply.places import api_version, kind_of
from reconciler.model.planned.action import Ref, Status
from reconciler.model.planned.decision import Decision
from reconciler.plan.explain import sentence
from reconciler.protocol.turns import verb_of

CONTROLLER = "gpu.scheduling/reconciler"

_LONGEST_NOTE_BYTES = 1024
_LONGEST_NAME = 230  # with a time behind it that is still a name
_CLUSTER_WIDE = "default"  # where Kubernetes wants Events of what has no namespace
_OUR_BOOKKEEPING = frozenset({"ConfigMap", "Lease"})


def is_told(decision: Decision) -> bool:
    """Statuses and what we keep for ourselves speak for themselves."""
    return not isinstance(decision.act, Status) and decision.subject.kind not in _OUR_BOOKKEEPING


def told_of(decision: Decision) -> Iterator[Decision]:
    """Of its subject, and of those that leave with it as of subjects of their own."""
    for ref in decision.refs:
        yield msgspec.structs.replace(decision, subject=ref)


class Events:
    """Drops what is too much, and whatever the API server does not want."""

    def __init__(self, server: Writer, bucket: Bucket) -> None:
        self._server, self._bucket = server, bucket
        self._instance = socket.gethostname()

    def tell(self, decision: Decision) -> None:
        """Never raises, and never waits for its turn."""
        if not self._bucket.try_take():
            return
        namespace = decision.subject.namespace or _CLUSTER_WIDE
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        with suppress(Unreachable):
            self._server.send(Request("POST", path, msgspec.json.encode(self._event(decision, namespace))))

    def _event(self, decision: Decision, namespace: str) -> dict[str, object]:
        subject = decision.subject
        now_nanoseconds = time.time_ns()
        at = datetime.fromtimestamp(now_nanoseconds / 1e9, UTC).isoformat(timespec="microseconds")
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{subject.name[:_LONGEST_NAME]}.{now_nanoseconds:x}", "namespace": namespace},
            "eventTime": at.replace("+00:00", "Z"),
            "type": "Normal",
            "reason": decision.reason.code,
            "action": verb_of(decision).capitalize(),
            "note": _note(decision),
            "regarding": _regarding(subject),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
        }


def _note(decision: Decision) -> str:
    try:
        told = sentence(decision.reason)
    except KeyError:  # a reason without a sentence is a fault, but what was done is no less done
        told = decision.reason.code
    return told.encode()[:_LONGEST_NOTE_BYTES].decode(errors="ignore")


def _regarding(subject: Ref) -> dict[str, str]:
    told = {
        "apiVersion": api_version(kind_of(subject)),
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
    }
    return {key: value for key, value in told.items() if value}
