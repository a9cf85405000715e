"""Content of the demo: the example fleet, a pull request to it, and a simulated cluster that follows it."""

from collections.abc import Callable, Iterator

import msgspec

from reconciler.controller.policies import Checkup, check_bundle
from reconciler.fleet.devices.device_lease import read_allocation
from reconciler.fleet.gpu_claims import claimed_devices
from reconciler.loop.cycle import decide
from reconciler.model import names
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, unix_seconds
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.quantity import Duration
from reconciler.plan.files.dump import PlanningResult
from reconciler.policy.changes import changes
from reconciler.policy.resolve import chosen
from reconciler.report.plans.build import Compared
from reconciler.report.simulation.simulated import Simulated, TimelineStep
from reconciler.simulate.results.meter import step_ms
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.scenario.reading import read_scenario, scenario_text
from reconciler.simulate.scenario.spec import Scenario
from reconciler.simulate.scenario.spec import ScenarioRevision as Folder
from reconciler.sources.input_file import demo_scenario, example_policies

# --- Owner of snapshots from a simulation: the cluster before any action, and with marked nodes.


class Witness:
    """A Publisher."""

    def __init__(self) -> None:
        self.first: Inputs | None = None
        self.marked: Inputs | None = None  # last inputs with softly tainted nodes
        self.last: Inputs | None = None

    def publish(self, cycled: CycleResult) -> None:
        inputs = cycled.inputs
        if inputs is None:
            return
        self.first, self.last = self.first or inputs, inputs
        if marks_of(inputs.observed):
            self.marked = inputs


def marks_of(observed: Observed) -> dict[str, Instant]:
    """Marked nodes that still accept pods, and their deletion times."""
    instants = {}
    for node in observed.nodes:
        for taint in node.spec.taints:
            at = unix_seconds(taint.value)
            if taint.key == names.DELETION_TIME and taint.effect == "PreferNoSchedule" and at is not None:
                instants[node.name] = at
    return instants


def later(inputs: Inputs, now: Instant) -> Inputs:
    """The same cluster, unchanged, at a later time."""
    return msgspec.structs.replace(inputs, observed=msgspec.structs.replace(inputs.observed, seen_at=now), now=now)


# --- The example fleet at three revisions: current, proposed by a pull request, and merged.

ENVIRONMENT = "prod"
_FILE = "policies/base/a100-training.yaml"


class LineEdit(msgspec.Struct, frozen=True):
    """One line of the policy of the training pool."""

    before: str
    after: str


_TAINTS = '  taints: [{{key: nvidia.com/gpu, value: "true", effect: NoSchedule}}{more}]'
RAISED = LineEdit("  minGPUUtilizationPercent: 70", "  minGPUUtilizationPercent: 80")
TAINTED = LineEdit(
    _TAINTS.format(more=""), _TAINTS.format(more=", {key: dedicated, value: training, effect: NoSchedule}")
)


class DemoRevision(msgspec.Struct, frozen=True):
    """The policies at a revision, checked."""

    texts: tuple[Text, ...]
    checkup: Checkup

    @property
    def desired(self) -> Desired:
        return chosen(self.checkup.resolved, ENVIRONMENT)


def revision(name: str, *edits: LineEdit) -> DemoRevision:
    """The fleet with these lines edited. Raises ValueError if a line does not exist."""
    texts = tuple(_edited(text, edits) if text.path == _FILE else text for text in example_policies())
    return DemoRevision(texts, check_bundle(Bundle(name, texts), "policies"))


def _edited(text: Text, edits: tuple[LineEdit, ...]) -> Text:
    content = text.content.decode()
    for each in edits:
        if each.before not in content:
            raise ValueError(f'the example fleet has no line "{each.before}" in {_FILE}')
        content = content.replace(each.before, each.after)
    return msgspec.structs.replace(text, content=content.encode())


# --- Story of the demo, simulated with the real loop and the policies of a revision.

_AT_ONCE = Duration(1)


def cluster_before(main: DemoRevision) -> Inputs:
    """The first inputs of the controller, before any action."""
    witness = Witness()
    _run(main, msgspec.structs.replace(_scenario(), duration=_AT_ONCE, expect=[]), RunOptions(publishers=(witness,)))
    if witness.first is None:
        raise ValueError("the demo's scenario has no cycle")
    return witness.first


def reviewed(before: Inputs, main: DemoRevision, proposed: DemoRevision) -> tuple[PlanningResult, Compared]:
    """The plan of the proposal and the plan of the policies in force, on the same cluster."""
    wish, was = proposed.desired, main.desired
    head = decide(msgspec.structs.replace(before, desired=wish))
    return head, Compared(decide(msgspec.structs.replace(before, desired=was)), changes(was, wish))


def performed(merged: DemoRevision, look: Callable[[TimelineStep], None]) -> tuple[Simulated, Witness]:
    """Result of the simulation; `look` is called with each step."""
    witness = Witness()
    return _run(merged, _scenario(), RunOptions(publishers=(witness,), look=look)), witness


def number_of_steps() -> int:
    duration_ms = _scenario().duration.milliseconds
    return duration_ms // step_ms(duration_ms) + 1


def scenario_file() -> bytes:
    """The same story for `reconciler simulate`, with the policies in a folder beside the scenario."""
    scenario = msgspec.structs.replace(_scenario(), policies=[Folder(folder="policies")])
    return scenario_text("demo", scenario).encode()


# --- Pods with a GpuClaim on one node, simulated as well.

CLAIMS_FILE = "claims.yaml"


class ClaimedPod(msgspec.Struct, frozen=True):
    """A pod, what its claim requests, and its GPUs; none while the pod waits."""

    name: str
    namespace: str
    claim: str
    requests: str
    gpus: tuple[str, ...] = ()  # ids
    leases: tuple[str, ...] = ()


def claims_played() -> tuple[Inputs, list[ClaimedPod]]:
    """The last inputs of the controller, and the pods with a claim by name; waiting pods are last."""
    witness, scenario = Witness(), _scenario(CLAIMS_FILE)
    texts = tuple(Text(path, content.encode()) for path, content in sorted(scenario.policies[0].files.items()))
    checkup = check_bundle(Bundle("claims", texts), CLAIMS_FILE)
    played = Play("claims", scenario, (Revised(0, chosen(checkup.resolved, None)),), scenario.seed)
    run(played, RunOptions(publishers=(witness,)))
    if witness.last is None:
        raise ValueError("the scenario of the claims has no cycle")
    return witness.last, sorted(_claimed_pods(witness.last), key=lambda each: (not each.gpus, each.name))


def claims_file() -> bytes:
    """The scenario, with its policies."""
    return demo_scenario(CLAIMS_FILE).content


def _claimed_pods(inputs: Inputs) -> Iterator[ClaimedPod]:
    specs = {each.name: claimed_devices(each.spec) for each in inputs.observed.policies if each.kind == "GpuClaim"}
    for pod in inputs.observed.pods:
        annotations = pod.metadata.annotations
        devices = specs.get(annotations.claim)
        if devices is None:
            continue
        uid = pod.metadata.uid
        leases = (each.metadata.name for each in inputs.observed.leases if each.spec.holder_identity == uid)
        ids = map(str, read_allocation(annotations.allocated, pod.node))
        text = f"{devices.count} GPUs, {devices.policy}"
        yield ClaimedPod(pod.name, pod.metadata.namespace, annotations.claim, text, (*ids,), (*sorted(leases),))


def _scenario(file: str = "scenario.yaml") -> Scenario:
    read = read_scenario(demo_scenario(file))
    if read.scenario is None:
        raise ValueError(f"the demo's scenario has problems: {read.problems}")
    return read.scenario


def _run(revision: DemoRevision, scenario: Scenario, watched: RunOptions) -> Simulated:
    return run(Play("demo", scenario, (Revised(0, revision.desired),), scenario.seed), watched)
