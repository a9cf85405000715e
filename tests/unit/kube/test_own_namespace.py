"""One setting, the controller's own namespace, counts wherever our own namespace is meant."""

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.fleet.fleet import Fleet
from reconciler.kube.api_server import ApiRequest, ApiResponse
from reconciler.kube.cluster_file import read_cluster
from reconciler.kube.watch.store import ObservedStore
from reconciler.model.cluster.metadata import Annotations, Metadata, Namespace
from reconciler.model.cluster.observed import Observed, Replica, difference
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Delete, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files import dump
from reconciler.plan.guards.frozen import Freezes
from reconciler.report.status.overview import controller_of, controller_words
from reconciler.schema.generated import kubectl_line
from reconciler.simulate.world import World
from tests.unit.kube.real_objects import listed
from tests.unit.plan.some_reasons import some_reason

FROZEN = Annotations(frozen_until="2100-01-01T00:00:00Z")
DECISION = Decision("hand", Ref("Node", "", "n1", "u"), Delete(), some_reason("Any"))


def observed(own: str, frozen: str) -> Observed:
    spaces = tuple(
        Namespace(Metadata(name, annotations=FROZEN if name == frozen else Annotations()))
        for name in ("gpu-system", "elsewhere")
    )
    return Observed(own_namespace=own, namespaces=spaces)


@pytest.mark.parametrize("own", ["gpu-system", "elsewhere"])
@pytest.mark.parametrize("frozen", ["gpu-system", "elsewhere"])
def test_all_is_frozen_by_the_annotation_of_the_controller_s_own_namespace_alone(own: str, frozen: str) -> None:
    inputs = Inputs(Desired("r", "base"), observed(own, frozen), Instant(0))
    found = Freezes(inputs, Fleet(inputs.observed)).why_still(DECISION, frozenset())
    assert bool(found) == (own == frozen)


def test_it_is_known_wherever_a_cluster_is_seen() -> None:
    assert ObservedStore((), lambda: Instant(0), "elsewhere").observed().own_namespace == "elsewhere"
    assert World(own_namespace="elsewhere").observe().own_namespace == "elsewhere"
    assert read_cluster("f", listed(), namespace="elsewhere").observed.own_namespace == "elsewhere"


def test_the_planner_s_process_and_a_dump_are_told_of_it() -> None:
    seen = observed("elsewhere", "")
    assert Replica().take(difference(Observed(), seen)) == seen
    inputs = Inputs(Desired("r", "base"), seen, Instant(0))
    assert dump.read(dump.write(inputs)).observed.own_namespace == "elsewhere"


def test_a_dump_keeps_its_own_whatever_is_said_beside_it() -> None:
    inputs = Inputs(Desired("r", "base"), observed("elsewhere", ""), Instant(0))
    assert read_cluster("f", dump.write(inputs), namespace="other").observed.own_namespace == "elsewhere"


def test_leases_of_the_own_namespace_alone_are_read_of_a_file() -> None:
    leases = [
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": each}}
        for each in ("gpu-system", "elsewhere")
    ]
    found = read_cluster("f", listed(*leases), namespace="elsewhere").observed.leases
    assert [each.metadata.namespace for each in found] == ["elsewhere"]


def test_status_names_the_lease_that_is_looked_for() -> None:
    told = controller_words(controller_of(observed("elsewhere", "")), Instant(0))
    assert "Lease/elsewhere/reconciler" in told


def test_kubectl_lists_leases_there_and_plan_is_told() -> None:
    line = kubectl_line((), (), "elsewhere")
    assert "-n elsewhere -o json" in line
    assert line.endswith("--complete --namespace elsewhere")
    assert "elsewhere" not in kubectl_line((), ())


class Server:
    """Knows some namespaces, and takes down what is sent."""

    def __init__(self, *namespaces: str, leases: tuple[str, ...] = ()) -> None:
        self.sent: list[ApiRequest] = []
        self._there = {f"/api/v1/namespaces/{each}" for each in namespaces}
        self._there |= {f"/apis/coordination.k8s.io/v1/namespaces/{each}/leases/reconciler" for each in leases}

    def send(self, request: ApiRequest) -> ApiResponse:
        self.sent.append(request)
        return ApiResponse(200 if request.path in self._there else 404, b"{}")

    def get(self, path: str, *_: object) -> ApiResponse:
        return ApiResponse(200 if path in self._there else 404, b"{}")


def freeze(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], server: Server, *options: str
) -> tuple[int, str]:
    monkeypatch.setattr("reconciler.kube.client.connect", lambda _: server)
    code = main(["freeze", "all", "--for", "1h", *options])
    return code, capsys.readouterr().err


def test_freeze_all_freezes_the_namespace_that_run_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server("gpu-system", "elsewhere", leases=("elsewhere",))
    assert freeze(monkeypatch, capsys, server, "--namespace", "elsewhere") == (0, "")
    assert [each.path for each in server.sent] == ["/api/v1/namespaces/elsewhere"]
    body = msgspec.json.decode(server.sent[0].body)
    assert body["metadata"]["annotations"]["gpu.scheduling/frozen-until"]
    monkeypatch.setenv("RECONCILER_NAMESPACE", "elsewhere")
    assert freeze(monkeypatch, capsys, server)[0] == 0
    assert server.sent[-1].path == "/api/v1/namespaces/elsewhere"


def test_freeze_all_says_so_where_no_controller_ever_led(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = freeze(monkeypatch, capsys, Server("gpu-system", leases=("elsewhere",)))
    assert code == 0
    assert "no controller has used the namespace gpu-system" in told


@pytest.mark.parametrize("namespace", ["../x", "A", "", "a/b", "a" * 64])
@pytest.mark.parametrize("command", ["freeze", "run", "apply", "plan", "status", "release", "rbac", "dump"])
def test_what_is_no_namespace_is_refused(command: str, namespace: str) -> None:
    subject = ["all", "--for", "1h"] if command == "freeze" else []
    assert main([command, *subject, "--namespace", namespace]) == 64
