"""Where the contract is tried: an imagined cluster, or the lab; each the owner of how many writes it has seen."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Protocol, cast

import msgspec

from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse
from reconciler.kube.apply.execute import Executor
from reconciler.kube.apply.fenced_writer import WriteLimits
from reconciler.kube.apply.verbs import kind_of
from reconciler.kube.client import Client
from reconciler.model.names import LEASES_NAMESPACE
from reconciler.model.plan.decision import Act, Decision, Outcome, Ref
from reconciler.model.right import Right
from reconciler.ports import Fence
from reconciler.schema.admission import Account, admission_policies
from reconciler.schema.rights.rules import writing_rights
from reconciler.simulate.world import World
from tests.lab.api import Api, Credential
from tests.lab.identities import NAMESPACE
from tests.lab.lab import Lab
from tests.stages.controlled import limited, taken_away
from tests.unit.plan.some_reasons import some_reason

Object = dict[str, Any]
Walk = Generator[Outcome, None, None]
SOMEONE = "kubectl-edit"
_WRITER = "lab-writer"
# Verbs that no feature decides on yet: each comes with a line of its own among the rights.
LATER = (
    Right("", ("pods/binding",), ("create",), "Pods that are bound."),
    Right("", ("pods/resize",), ("patch",), "Pods that are resized."),
    Right("coordination.k8s.io", ("leases",), ("create", "delete"), "GPUs that are lent.", LEASES_NAMESPACE),
)
WRITER = f"system:serviceaccount:{NAMESPACE}:{_WRITER}"


class Standing:
    """A fence that holds."""

    def holds(self) -> bool:
        return True


class Fallen:
    """A fence that fell."""

    def holds(self) -> bool:
        return False


STANDING = Standing()


def decision(ref: Ref, act: Act, after: tuple[Ref, ...] = (), would: bool = False) -> Decision:
    return Decision("contract", ref, act, some_reason("Contract"), after=after, would=would)  # type: ignore[arg-type]


class Ground(Protocol):
    """A cluster on which others write too."""

    @property
    def writes(self) -> int:
        """How many writes decisions came to, so far."""
        ...

    def put(self, manifest: Object) -> Ref:
        """Made by somebody else."""
        ...

    def edit(self, ref: Ref, patch: Object, manager: str = SOMEONE) -> None:
        """Edited by somebody else."""
        ...

    def get(self, ref: Ref) -> Object | None: ...

    def until(self, ref: Ref, is_so: Callable[[Object | None], object]) -> Object | None:
        """The object once it is so; on an imagined cluster it is so already."""
        ...

    def begin(self, decisions: Iterable[Decision], fence: Fence = STANDING) -> Walk:
        """Carried out as it is walked."""
        ...

    def apply(self, decisions: Iterable[Decision], fence: Fence = STANDING) -> list[Outcome]: ...


class Imagined:
    """The imagined cluster."""

    def __init__(self) -> None:
        self.world = World()
        self.writes = 0
        self.world.on_write = self._count

    def put(self, manifest: Object) -> Ref:
        return self.world.put(manifest, SOMEONE)

    def edit(self, ref: Ref, patch: Object, manager: str = SOMEONE) -> None:
        self.world.edit(ref, patch, manager)

    def get(self, ref: Ref) -> Object | None:
        return self.world.get(ref)

    def until(self, ref: Ref, is_so: Callable[[Object | None], object]) -> Object | None:
        found = self.world.get(ref)
        assert is_so(found), found
        return found

    def begin(self, decisions: Iterable[Decision], fence: Fence = STANDING) -> Walk:
        return cast("Walk", self.world.apply(tuple(decisions), fence))

    def apply(self, decisions: Iterable[Decision], fence: Fence = STANDING) -> list[Outcome]:
        return list(self.begin(decisions, fence))

    def _count(self, written: Ref) -> None:
        self.writes += 1


class Counted:
    """A client whose writes are counted, Events apart, and before each of which somebody may do something."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.writes = 0
        self.before: Callable[[ApiRequest], None] | None = None

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        return self.client.get(path, query, accept)

    def send(self, request: ApiRequest) -> ApiResponse:
        if "/events.k8s.io/" not in request.path:
            self.writes += 1
            if self.before:
                self.before(request)
        return self.client.send(request)


class Real:
    """The lab."""

    def __init__(self, lab: Lab, url: str = "") -> None:
        self.admin = lab.admin
        self.server = Counted(client_of(lab.admin, url))
        self.limits = admission_policies([*writing_rights((), NAMESPACE), *LATER], Account(NAMESPACE, _WRITER))
        for each in self.limits:
            lab.admin.apply(each)
        limited(lab.admin, Api(lab.admin.url, lab.admin.authority, Credential(token=token_of(lab.admin))))
        self.applying = Executor(self.server, limits=WriteLimits(writes_per_second=500.0, burst=500))

    @property
    def writes(self) -> int:
        return self.server.writes

    def put(self, manifest: Object) -> Ref:
        made = self.admin.create(manifest)
        metadata = made["metadata"]
        ref = Ref(made["kind"], metadata.get("namespace", ""), metadata["name"], metadata["uid"])
        if "status" in manifest and ref.kind != "Node":
            self.admin.merge(f"{self._path(ref)}/status", {"status": manifest["status"]})
        return ref

    def edit(self, ref: Ref, patch: Object, manager: str = SOMEONE) -> None:
        path = f"{self._path(ref)}?fieldManager={manager}"
        self.admin.must("PATCH", path, patch, "application/merge-patch+json")

    def get(self, ref: Ref) -> Object | None:
        return self.admin.get(kind_of(ref).plural, ref.name, ref.namespace)

    def until(self, ref: Ref, is_so: Callable[[Object | None], object]) -> Object | None:
        deadline = time.monotonic() + 60
        while not is_so(found := self.get(ref)):
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found

    def begin(self, decisions: Iterable[Decision], fence: Fence = STANDING) -> Walk:
        return cast("Walk", self.applying.apply(tuple(decisions), fence))

    def apply(self, decisions: Iterable[Decision], fence: Fence = STANDING) -> list[Outcome]:
        return list(self.begin(decisions, fence))

    def close(self) -> None:
        self.server.client.close()
        taken_away(self.admin, self.limits)

    def _path(self, ref: Ref) -> str:
        return self.admin.path(kind_of(ref).plural, ref.name, ref.namespace)


def client_of(admin: Api, url: str = "") -> Client:
    """Somebody who may do everything that the admission policies of the controller let pass: roles are tried
    elsewhere. By a token, which passes through a proxy."""
    account = {"kind": "ServiceAccount", "name": _WRITER, "namespace": NAMESPACE}
    metadata = {"name": _WRITER, "namespace": NAMESPACE}
    admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    admin.apply({**binding, "metadata": {"name": _WRITER}, "roleRef": role, "subjects": [account]})
    return Client.at(url or admin.url, admin.authority, token_of(admin))


def token_of(admin: Api) -> str:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{_WRITER}/token"
    return str(admin.must("POST", path, asked)["status"]["token"])


def apply_of(manifest: Object) -> str:
    """Canonical JSON."""
    return msgspec.json.encode(manifest, order="sorted").decode()
