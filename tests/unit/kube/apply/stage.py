"""A small API server with one pod on it, that answers as a script says; and decisions about that pod."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse, Unreachable
from reconciler.kube.apply.execute import Executor
from reconciler.kube.apply.fenced_writer import WriteLimits
from reconciler.model.plan.decision import Act, Decision, Label, Outcome, Reason, Ref
from reconciler.plan.nodes.ownership import CordonedByOthers
from reconciler.ports import Fence
from reconciler.protocol.patches import merged

Object = dict[str, Any]

POD = Ref("Pod", "team-a", "train", "uid-1")
EVENTS = "/apis/events.k8s.io/v1/namespaces/team-a/events"
SILENT = Unreachable("the API server closed the connection", "check that it runs")
OURS = "gpu.scheduling/claim"


class Lost(msgspec.Struct, frozen=True):
    """The connection breaks before the answer; what was asked for has taken effect, or not."""

    took_effect: bool


TAKEN = ApiResponse(200, b"{}")
Act_ = ApiResponse | Lost


def refusal(status: int, reason: str = "", message: str = "", **details: Any) -> ApiResponse:
    """As Kubernetes words it."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": message, "details": details}
    return ApiResponse(status, msgspec.json.encode(body), float(details.get("retryAfterSeconds", 0)))


class ScriptedServer:
    """Answers as told, in turn, and then as an API server would. Owner of the pod, and of what was sent."""

    def __init__(self, sends: Iterable[Act_] = (), looks: Iterable[Act_] = ()) -> None:
        self.sends, self.looks = list(sends), list(looks)
        self.sent: list[ApiRequest] = []
        self.told: list[Object] = []  # Events
        self.event_answer: Act_ = ApiResponse(201, b"{}")
        self.meanwhile: Callable[[], None] = lambda: None  # somebody else, between a look and what is sent
        self.looked: Callable[[], None] = lambda: None  # somebody else, once it was looked at
        self.version = 1
        self.pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "train", "namespace": "team-a", "uid": "uid-1", "labels": {"app": "train"}},
        }
        self._lock = threading.Lock()

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.pod["metadata"]["labels"])

    def edit(self, patch: Object) -> None:
        self.version += 1
        self.pod = merged(self.pod, patch)

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        assert path == "/api/v1/namespaces/team-a/pods/train"
        with self._lock:
            if self.looks:
                return _played(self.looks.pop(0))
            shown = merged(self.pod, {"metadata": {"resourceVersion": str(self.version)}})
            self.looked()
            return ApiResponse(200, msgspec.json.encode(shown))

    def send(self, request: ApiRequest) -> ApiResponse:
        with self._lock:
            if request.path.startswith(EVENTS):
                self.told.append(msgspec.json.decode(request.body))
                return _played(self.event_answer)
            self.sent.append(request)
            self.meanwhile()
            act = self.sends.pop(0) if self.sends else TAKEN
            takes_effect = act.took_effect if isinstance(act, Lost) else act is TAKEN
            if takes_effect:
                patch = msgspec.json.decode(request.body)
                if patch["metadata"].pop("resourceVersion") != str(self.version):
                    return refusal(409, "Conflict", "the object has been modified")
                self.edit(patch)
            return _played(act)


def _played(act: Act_) -> ApiResponse:
    if isinstance(act, Lost):
        raise SILENT
    return act


class Holding:
    """A fence that can be felled."""

    def __init__(self) -> None:
        self.stands = True

    def holds(self) -> bool:
        return self.stands


class Scene:
    """One identity that writes to a scripted server. Owner of how long was waited."""

    def __init__(self, server: ScriptedServer, **limits: Any) -> None:
        self.server = server
        self.fence = Holding()
        self.pauses_seconds: list[float] = []
        self.on_pause: Callable[[], None] = lambda: None
        asked = {"pause": self._pause, "writes_per_second": 1e6, **limits}
        self.applying = Executor(server, limits=WriteLimits(**asked))

    def label(self, fence: Fence | None = None) -> Outcome:
        """The one decision: our label on the pod."""
        return self.apply([labelled()], fence)[0]

    def apply(self, decisions: list[Decision], fence: Fence | None = None) -> list[Outcome]:
        return list(self.applying.apply(decisions, fence or self.fence))

    def _pause(self, seconds: float) -> None:
        self.pauses_seconds.append(seconds)
        self.on_pause()


def labelled(act: Act | None = None) -> Decision:
    reason = Reason(CordonedByOthers(node="n1"))
    chosen = act or Label(labels=((OURS, "c"),))
    return Decision("tests", POD, chosen, reason)  # type: ignore[arg-type]  # any act will do
