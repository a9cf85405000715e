"""Owner of one lab: starts its parts in order, gives out identities, and stops everything it started."""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3
import yaml

from tests.lab import identities, parts, processes
from tests.lab.api import Api, Manifest
from tests.lab.audit import Audit
from tests.lab.build import Built
from tests.lab.capacity import INSTANCE_TYPES, InstanceType, node_class
from tests.lab.certificates import Authority, Pair
from tests.lab.ports import free_ports
from tests.lab.processes import Child
from tests.lab.proxy.door import Proxy
from tests.lab.site import Site
from tests.lab.wipe import wipe

_FOLDER_PREFIX = "reconciler-lab-"
# A lab lives for minutes, and has little to hold: fewer collections, which are a sixth of what an API server does.
_COLLECT_SELDOM = {"GOGC": "400"}


class Lab:
    """A control plane (etcd, API server, controllers), and on demand schedulers, KWOK, Karpenter and proxies."""

    def __init__(self, built: Built) -> None:
        _sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
        (self.folder / "owner.pid").write_text(str(os.getpid()))
        etcd_port, api_port = free_ports(2)
        self.site = Site(self.folder, built, Authority(self.folder / "certificates"), etcd_port, api_port)
        self.admin = self.site.api("admin", "system:masters")
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        # A terminate must unwind as an interrupt does, or the default action would end us in the middle.
        with contextlib.suppress(ValueError):  # not on the main thread: then it isn't ours to decide
            signal.signal(signal.SIGTERM, _interrupted)
        try:
            self._start_control_plane()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def start(self, *wanted: str) -> None:
        """Starts what is not running yet of: scheduler, kwok, karpenter."""
        starters: Mapping[str, Callable[[], object]] = {
            "scheduler": self.add_scheduler,
            "kwok": lambda: self._start("kwok", parts.kwok(self.site)),
            "karpenter": self.start_karpenter,
        }
        for part in wanted:
            if not self.running(part):
                starters[part]()

    def running(self, part: str) -> Child | None:
        return next((child for child in self._children if child.name == part and child.running()), None)

    def fallen(self) -> Child | None:
        """A part that ended by itself."""
        return next((child for child in self._children if not child.running()), None)

    def stop_part(self, part: str) -> None:
        """Stops one part and leaves the rest: what happens while it is away is then part of a test."""
        if child := self.running(part):
            child.stop()
            self._children.remove(child)

    def stop_parts(self) -> Self:
        """Leaves the control plane alone, whatever was started before: nobody else writes."""
        for part in ("karpenter", "kwok", "scheduler"):
            self.stop_part(part)
        return self

    def add_scheduler(
        self, name: str = "scheduler", configuration: Mapping[str, Any] | None = None, account: Api | None = None
    ) -> Child:
        """The default scheduler, or another beside it with its own KubeSchedulerConfiguration, and its own account."""
        child = self._start(name, parts.scheduler(self.site, name, configuration or {}, account))
        child.wait_until(lambda: "Caches populated" in child.log.read_text() or _serving(child))
        return child

    def start_karpenter(self, instance_types: tuple[InstanceType, ...] = INSTANCE_TYPES) -> Child:
        """Karpenter with these instance types on offer; called again, it is started anew with the new offer."""
        self.stop_part("karpenter")
        self.admin.apply(node_class())
        command = parts.karpenter(self.site, instance_types)
        child = self._start("karpenter", command, parts.karpenter_environment(self.site))
        child.wait_until(lambda: "Starting Controller" in child.log.read_text())
        return child

    def proxy(self) -> Proxy:
        """A door to the API server that can be told to misbehave, open while in a `with` block."""
        pair = self.site.authority.server("proxy")
        authority = self.site.authority.certificate
        return Proxy(upstream=self.site.api_url, authority=authority, certificate=pair.certificate, key=pair.key)

    def audit(self) -> Audit:
        """The audit log from here on."""
        audit = Audit(self.site.audit_log, self.admin)
        audit.skip()
        return audit

    def load(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        """Creates many objects at once; their order is kept in what is returned."""
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(self.admin.create, manifests))

    def wipe(self) -> None:
        """Takes away what tests left behind; namespaces, accounts and definitions of the lab stay."""
        wipe(self.admin)

    def pids(self) -> dict[str, int]:
        return {child.name: child.pid for child in self._children if child.running()}

    def stop(self) -> None:
        """Newest first: without etcd an API server ignores SIGTERM and keeps its port."""
        # A second Ctrl-C must not leave the rest running.
        with _no_interrupts():
            while self._children:
                self._children.pop().stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, name: str, command: parts.Command, environment: Mapping[str, str] | None = None) -> Child:
        with _no_interrupts():  # between the start of a process and our knowing it, nothing may come
            child = processes.start(name, command, self.site.log(name), {**_COLLECT_SELDOM, **(environment or {})})
            self._children.append(child)
        return child

    def _start_control_plane(self) -> None:
        signing = self.site.authority.signing_key("service-accounts")
        etcd = self._start("etcd", parts.etcd(self.site))
        self._answers(etcd, self.site.api("etcd-probe"), self.site.etcd_url, "/health")
        server = self._start("apiserver", parts.api_server(self.site, signing))
        self._answers(server, self.admin, self.site.api_url, "/readyz")
        self._start_controllers(signing)

    def _start_controllers(self, signing: Pair) -> None:
        child = self._start("controllers", parts.controllers(self.site, signing))
        identities.establish(self.admin)
        for path in self.site.built.definitions():
            for manifest in yaml.safe_load_all(path.read_text()):
                self.admin.apply(manifest)
        # Pods need the default account, which a controller makes: when it is there, controllers work.
        child.wait_until(lambda: self.admin.get("serviceaccounts", "default", "default") is not None)
        child.wait_until(self._definitions_served)

    def _definitions_served(self) -> bool:
        definitions = self.admin.list("customresourcedefinitions")
        return all(
            any(c["type"] == "Established" and c["status"] == "True" for c in each["status"].get("conditions") or ())
            for each in definitions
        )

    def _answers(self, child: Child, api: Api, url: str, path: str) -> None:
        door = api.at(url)

        def ready() -> bool:
            try:
                return door.request("GET", path).code == 200
            except urllib3.exceptions.HTTPError:
                return False

        child.wait_until(ready)


def _serving(child: Child) -> bool:
    return "Serving securely" in child.log.read_text()


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Holds Ctrl-C and SIGTERM back until the block is done; on other threads they never arrive anyway."""
    held = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sweep() -> None:
    """Removes folders of labs whose owner was killed; their processes died with it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):  # its owner takes it away just now
            owner = folder / "owner.pid"
            fresh = time.time() - folder.stat().st_mtime < 60
            if not fresh and not (owner.exists() and Path(f"/proc/{owner.read_text()}").exists()):
                shutil.rmtree(folder, ignore_errors=True)
