"""Loads a scenario file into a Play: reads, renders and checks everything that the scenario names."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from reconciler.controller.cluster import ClusterPlace, observed_cluster
from reconciler.controller.policies import Checkup, Origins, check, check_bundle
from reconciler.kube.cluster_file import ClusterFileError
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.plan.memory import Memory
from reconciler.model.problem import Problem
from reconciler.policy.resolve import Resolved, chosen
from reconciler.simulate.bootstrap.check_names import unknown_names
from reconciler.simulate.openb import OpenbNode, OpenbPods, read_nodes, read_pods
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.scenario.reading import place_of, read_scenario
from reconciler.simulate.scenario.spec import MOST_REVISION, Scenario, ScenarioRevision
from reconciler.sources.input_file import MOST_SCENARIO_BYTES, MOST_TRACE_BYTES, read_file

_TEMPLATE = ".j2"
_TEMPLATES = "templates/"


class SimulationRequest(msgspec.Struct, frozen=True):
    """A scenario file; the policy folders that replace its last policies; its seed; and the folder that must contain
    all files of the scenario."""

    file: Path
    policies: tuple[Path, ...] = ()
    seed: int | None = None
    tree: Path | None = None  # None: the folder of the scenario


class Prepared(msgspec.Struct, frozen=True):
    """The plays, one per set of policies; none if there are problems."""

    checkup: Checkup
    plays: tuple[Play, ...] = ()
    notices: tuple[str, ...] = ()


def prepared(request: SimulationRequest) -> Prepared:
    """Loads the request. Raises NotChosen, OSError."""
    text = Text(request.file.as_posix(), read_file(request.file, MOST_SCENARIO_BYTES))
    read = read_scenario(text)
    if read.scenario is None:
        return Prepared(_refused(read.problems))
    reading = _ScenarioReader(request, read.name, (text, read.scenario))
    plays = tuple(reading.plays())
    reading.problems += [place_of(text, names) for names in (unknown_names(plays) if plays else ())]
    if reading.problems:
        return Prepared(_refused(tuple(sorted(set(reading.problems))), reading.notices))
    return Prepared(_refused((), reading.notices), plays, tuple(dict.fromkeys(reading.notices)))


def _refused(problems: tuple[Problem, ...], notices: Sequence[str] = ()) -> Checkup:
    return Checkup(Resolved((), (), problems, 1), tuple(dict.fromkeys(notices)))


class _ScenarioReader:
    """Owner of the problems found in one scenario and its files."""

    def __init__(self, request: SimulationRequest, name: str, written: tuple[Text, Scenario]) -> None:
        self.problems: list[Problem] = []
        self.notices: list[str] = []
        self._request = request
        self._name = name
        self._text, self._scenario = written
        self._folder = request.file.parent
        self._tree = os.path.realpath(request.tree or self._folder)

    def plays(self) -> Iterator[Play]:
        """One play per set of policies; a play with problems must not be run."""
        request, scenario = self._request, self._scenario
        first = [self._revised(each, f"spec.policies[{at}]") for at, each in enumerate(scenario.policies[:-1])]
        observed, memory = self._read_snapshot()
        machines, traces = self._machines(), tuple(self._traces())
        for label, last, place in self._last_ones():
            revisions = tuple(each for each in (*first, self._revised(last, place)) if each is not None)
            if len(revisions) == len(scenario.policies):
                yield Play(
                    name=self._name,
                    scenario=msgspec.structs.replace(scenario, policies=[*scenario.policies[:-1], last]),
                    revisions=revisions,
                    seed=scenario.seed if request.seed is None else request.seed,
                    label=label,
                    machines=machines,
                    traces=traces,
                    observed=observed,
                    memory=memory,
                )

    def _last_ones(self) -> Iterator[tuple[str, ScenarioRevision, str]]:
        """The scenario's last revision and its place; or policies named by a person, which may be in any folder."""
        last = self._scenario.policies[-1]
        if not self._request.policies:
            yield "", last, f"spec.policies[{len(self._scenario.policies) - 1}]"
        for label, path in _labelled(self._request.policies):
            folder = relative(path, self._folder)
            yield label, ScenarioRevision(at=last.at, revision=label[:MOST_REVISION], folder=folder), ""

    def _revised(self, revision: ScenarioRevision, place: str) -> Revised | None:
        if revision.folder:
            folder = Path(os.path.normpath(self._folder / revision.folder))
            # Templates are read from beside the folder: they are in the tree if the parent folder is.
            if place and not (
                self._is_inside(folder, f"{place}.folder") and self._is_inside(folder.parent, f"{place}.folder")
            ):
                return None
            checkup = check(Origins((folder,)), self._scenario.environment)
        else:
            checkup = check_bundle(_bundle(revision), "the scenario", self._scenario.environment)
        return self._wished(checkup, revision.at.milliseconds, revision.revision)

    def _wished(self, checkup: Checkup, after_ms: int, name: str) -> Revised | None:
        self.notices += checkup.notices
        self.problems += checkup.resolved.problems
        if checkup.resolved.problems:
            return None
        desired: Desired = chosen(checkup.resolved, self._scenario.environment, choose_with="spec.environment")
        return Revised(after_ms, msgspec.structs.replace(desired, revision=name or desired.revision))

    def _read_snapshot(self) -> tuple[Observed | None, Memory]:
        path, place = self._scenario.cluster.dump, "spec.cluster.dump"
        if not path or not self._is_inside(self._folder / path, place):
            return None, Memory()
        try:
            cluster_view = observed_cluster(ClusterPlace(self._folder / path))
        except OSError as error:
            self._unread(place, error)
            return None, Memory()
        except ClusterFileError as error:
            self.problems.append(Problem(error.file, error.line, 0, "RC101", error.sentence, error.remedy))
            return None, Memory()
        self.notices += cluster_view.notes
        return cluster_view.observed, cluster_view.memory

    def _machines(self) -> tuple[OpenbNode, ...]:
        path = self._scenario.cluster.openb_nodes
        text = self._file(path, "spec.cluster.openbNodes") if path else None
        if text is None:
            return ()
        openb_nodes = read_nodes(text)
        self.problems += openb_nodes.problems
        return openb_nodes.nodes

    def _traces(self) -> Iterator[tuple[str, OpenbPods]]:
        for number, each in enumerate(self._scenario.workloads):
            place = f"spec.workloads[{number}].trace.openbPods"
            if each.trace and (text := self._file(each.trace.openb_pods, place)) is not None:
                openb_pods = read_pods(text, each.trace.from_.milliseconds)
                self.problems += openb_pods.problems
                yield each.name, openb_pods

    def _file(self, path: str, place: str) -> Text | None:
        file = self._folder / path
        if not self._is_inside(file, place):
            return None
        try:
            return Text(file.as_posix(), read_file(file, MOST_TRACE_BYTES))
        except OSError as error:
            self._unread(place, error)
            return None

    def _is_inside(self, path: Path, place: str) -> bool:
        """Whether the path is in the tree, with links resolved; otherwise records a problem, and the file is not read
        or shown.

        A scenario may come from anybody and must not bring other files of the user into a report.
        """
        with suppress(ValueError):  # a NUL in the path
            if Path(os.path.realpath(path)).is_relative_to(self._tree):
                return True
        text = "is outside of the scenario's folder"
        remedy = "move the file below that folder, or name a common parent folder with --tree"
        self.problems.append(place_of(self._text, (place, "RC501", text, remedy)))
        return False

    def _unread(self, place: str, error: OSError) -> None:
        """Records a file of the scenario that cannot be read."""
        text = f"{Path(error.filename).as_posix()} cannot be read: {error.strerror}"
        self.problems.append(place_of(self._text, (place, "RC501", text, "name an existing file")))


def relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def _labelled(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Each path with the shortest suffix that distinguishes it from the others."""
    for path in paths:
        others = {each.resolve().parts for each in paths if each != path}
        parts = path.resolve().parts
        length = next(
            (number for number in range(1, len(parts)) if all(each[-number:] != parts[-number:] for each in others)), 1
        )
        yield "/".join(parts[-length:]), path


def _bundle(revision: ScenarioRevision) -> Bundle:
    """Bundle of files that are inline in the scenario, under their names."""
    texts = [Text(path, content.encode()) for path, content in sorted(revision.files.items())]
    policies = tuple(each for each in texts if not each.path.endswith(_TEMPLATE))
    templates = [each for each in texts if each.path.endswith(_TEMPLATE)]
    renamed = tuple(Text(each.path.removeprefix(_TEMPLATES), each.content, each.path) for each in templates)
    return Bundle(revision.revision or "inline", policies, renamed)
