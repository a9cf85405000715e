"""Builds the lab's binaries once into the user's cache directory, keyed by the content of the Go module."""

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lab import toolchain
from tests.lab.places import MODULE, cache_directory
from tests.lab.toolchain import LabUnavailable

Tell = Callable[[str], None]

KUBERNETES = "v1.36.3"
_VERSION = "k8s.io/component-base/version"
# Without a version that clients can parse, the API server calls itself v0.0.0-master and they refuse it.
_KUBE_FLAGS = f"-s -w -X {_VERSION}.gitVersion={KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"

TARGETS = (
    ("kube", "./kube", _KUBE_FLAGS),
    ("karpenter", "sigs.k8s.io/karpenter/kwok", "-s -w"),
    ("kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w"),
)
# module, folder in it, name beside the binaries
ASSETS = (
    ("sigs.k8s.io/karpenter", "kwok/charts/crds", "crds/karpenter"),
    ("sigs.k8s.io/karpenter", "kwok/apis/crds", "crds/karpenter-kwok"),
    ("sigs.k8s.io/kwok", "kustomize/stage/node/fast", "stages/node-fast"),
    ("sigs.k8s.io/kwok", "kustomize/stage/node/heartbeat-with-lease", "stages/node-heartbeat"),
)
KEEP_DAYS = 30


@dataclass(frozen=True)
class Built:
    """A finished build: the binaries, the definitions and the stages that belong together."""

    path: Path

    def binary(self, name: str) -> Path:
        return self.path / name

    def definitions(self) -> list[Path]:
        return sorted(self.path.glob("crds/**/*.yaml"))

    def stock_stages(self) -> list[Path]:
        return sorted(path for path in self.path.glob("stages/**/*.yaml") if path.name != "kustomization.yaml")


def say(text: str) -> None:
    """One line of progress, where a person or a log sees it at once."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def built(tell: Tell = say) -> Built:
    """The build for this module's content: at once where it exists, else made now, by one process at a time."""
    path = cache_directory() / key()
    if not path.exists():
        cache_directory().mkdir(parents=True, exist_ok=True)
        with _lock(tell):
            if not path.exists():
                _build(path, tell)
    path.touch()
    return Built(path)


def key() -> str:
    """Names a build by everything that goes into it."""
    digest = hashlib.sha256(repr((TARGETS, ASSETS)).encode())
    for path in sorted(path for path in MODULE.rglob("*") if path.suffix in {".mod", ".sum", ".go"}):
        digest.update(f"\0{path.relative_to(MODULE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _lock(tell: Tell) -> Iterator[None]:
    with (cache_directory() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another run is building it: waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(path: Path, tell: Tell) -> None:
    started = time.monotonic()
    _forget_old_builds()
    go = toolchain.go(tell)
    tell("building etcd, Kubernetes, Karpenter and KWOK; this happens once and takes some minutes")
    unfinished = path.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    tell("fetching modules")
    _run([go, "mod", "download"])
    for number, (name, package, flags) in enumerate(TARGETS, start=1):
        title = f"{name} ({number} of {len(TARGETS)})"
        _compile([go, "build", "-v", "-trimpath", f"-ldflags={flags}", "-o", unfinished / name, package], title, tell)
    for module, folder, name in ASSETS:
        root = Path(_run([go, "list", "-m", "-f", "{{.Dir}}", module]).strip())
        # Copied by content: the module cache is read-only, and so would be our copy, and then nobody could delete it.
        shutil.copytree(root / folder, unfinished / name, copy_function=shutil.copyfile, ignore=_not_yaml)
        for copied in [unfinished / name, *(unfinished / name).rglob("*")]:
            copied.chmod(0o755 if copied.is_dir() else 0o644)
    unfinished.rename(path)
    tell(f"built in {time.monotonic() - started:.0f} s")


def _not_yaml(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".yaml")]


def _forget_old_builds() -> None:
    """Builds of content that nobody has used for a month go: each takes 230 MB."""
    oldest = time.time() - KEEP_DAYS * 86_400
    for path in cache_directory().iterdir():
        if (path / "kube").exists() and path.stat().st_mtime < oldest:
            shutil.rmtree(path, ignore_errors=True)


def _run(command: list[str | Path]) -> str:
    done = subprocess.run(command, cwd=MODULE, env=toolchain.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabUnavailable(f"{' '.join(map(str, command))} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _compile(command: list[str | Path], title: str, tell: Tell) -> None:
    """Runs one `go build -v`, which names each package as it is compiled, and counts them out loud."""
    with subprocess.Popen(
        command, cwd=MODULE, env=toolchain.environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said = tuple(_counted(process.stderr or (), title, tell))
        except BaseException:
            process.terminate()  # an interrupt may have come to us alone; go ends its compilers itself
            raise
    if process.returncode:
        raise LabUnavailable(f"{' '.join(map(str, command))} failed:\n{''.join(said[-20:])}")


def _counted(lines: Iterable[str], title: str, tell: Tell) -> Iterator[str]:
    count, last = 0, time.monotonic()
    tell(title)
    for count, line in enumerate(lines, start=1):
        if time.monotonic() - last > 15:
            tell(f"{title}: {count} packages compiled")
            last = time.monotonic()
        yield line
    if count:
        tell(f"{title}: {count} packages compiled, linked")
