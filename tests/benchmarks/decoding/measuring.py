"""Decodes the pages of a folder in a process of its own, and prints what that took: FOLDER speed, size or models."""

import gc
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient

from reconciler.kube.decode import page
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files import dump

Figures = dict[str, float | int | str]


def size(folder: Path) -> Figures:
    """How much an Observed holds, and a dump of it needs."""
    gc.collect()
    start_mib = resident_mib("VmRSS")
    observed = observe(folder)
    gc.collect()
    return {"resident_growth_mib": resident_mib("VmRSS") - start_mib} | dumped(observed)


def observe(folder: Path) -> Observed:
    found: dict[str, list[Any]] = defaultdict(list)
    for seen, raw in pages(folder):
        found[seen.field] += page(seen, raw).items
    fields: dict[str, Any] = {field: tuple(objects) for field, objects in found.items()}
    return Observed(**fields)


def dumped(observed: Observed) -> Figures:
    inputs = Inputs(Desired("", ""), observed, Instant(0))
    before_mib = resident_mib("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew from here
    started = time.perf_counter()
    written = dump.write(inputs)
    seconds = time.perf_counter() - started
    return {
        "dump_mib": len(written) >> 20,
        "dump_seconds": round(seconds, 2),
        "dump_peak_growth_mib": resident_mib("VmHWM") - before_mib,
    }


def speed(folder: Path) -> Figures:
    """Only decoding is timed, by the processor's own clock; the bytes are in memory by then."""
    found: dict[str, list[Any]] = defaultdict(list)
    taken: dict[str, float] = defaultdict(float)
    whole = 0
    for seen, raw in pages(folder):
        started = time.process_time()
        found[seen.field] += page(seen, raw).items
        taken[seen.kind] += time.process_time() - started
        whole += len(raw)
    ours_us = (taken["Node"] + taken["Pod"]) / (len(found["nodes"]) + len(found["pods"])) * 1e6
    return {
        "json_mib": whole >> 20,
        "decoding_seconds": round(sum(taken.values()), 2),
        "us_an_object": round(ours_us, 1),
    }


def models(folder: Path) -> Figures:
    """The `kubernetes` package, on four pages of pods and as many nodes as go with them; kept, as ours are."""
    client, kept, taken = ApiClient(), [], 0.0
    nodes = next(folder.glob("Node-*")).read_bytes()
    listed = json.loads(nodes)
    texts = [("V1NodeList", json.dumps({**listed, "items": listed["items"][:100]}))]
    texts += [("V1PodList", each.read_text()) for each in sorted(folder.glob("Pod-*"))[25::50]]
    del listed
    for kind, text in texts:
        started = time.process_time()
        kept.append(client.deserialize(text, kind, "application/json"))
        taken += time.process_time() - started
    sample = sum(len(each.items) for each in kept)
    return {"sample": sample, "models_us_an_object": round(taken / sample * 1e6, 1)}


def pages(folder: Path) -> Iterator[tuple[ResourceKind, bytes]]:
    kinds: dict[str, ResourceKind] = {}
    for seen in RESOURCE_KINDS:
        kinds.setdefault(seen.kind, seen)
    for file in sorted(folder.iterdir()):
        yield kinds[file.name.partition("-")[0]], file.read_bytes()


def resident_mib(line: str) -> int:
    status = Path("/proc/self/status").read_text()
    (found,) = [each for each in status.splitlines() if each.startswith(line)]
    return int(found.split()[1]) >> 10


if __name__ == "__main__":
    asked = {"size": size, "speed": speed, "models": models}[sys.argv[2]]
    print(json.dumps(asked(Path(sys.argv[1]))))
