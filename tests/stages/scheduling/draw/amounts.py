"""What pods ask for, at random: containers, what starts before them, sidecars, overhead, and all of a pod at once."""

from tests.stages.scheduling.draw.chance import DONGLE, GPU, HUGE_PAGES, Chance, Manifest, container

RUNTIME = "lab-heavy"  # a RuntimeClass with an overhead
OVERHEAD = {"cpu": "250m", "memory": "120Mi"}

_CPU = ("10m", "100m", "0.5", "1", "1500m", "2", "0.1001")
_MEMORY = ("64Mi", "128M", "1Gi", "2Gi", "1.5Gi", "3000M", "1e9")


def small(chance: Chance) -> dict[str, str]:
    """So little that it is seldom what decides."""
    return chance.choice([{}, {"cpu": "1m"}, {"cpu": "10m", "memory": "16Mi"}])


def much(chance: Chance) -> dict[str, str]:
    """Of one thing or several, often more than some nodes have left."""
    found = {}
    for key, values, percent in (
        ("cpu", _CPU, 60),
        ("memory", _MEMORY, 50),
        ("ephemeral-storage", ("1Gi", "9Gi", "15Gi"), 15),
        (GPU, ("0", "1", "2", "4", "8"), 30),
        (DONGLE, ("1", "2"), 10),
        (HUGE_PAGES, ("32Mi", "64Mi"), 10),
    ):
        if chance.percent(percent):
            found[key] = chance.choice(values)
    if HUGE_PAGES in found:  # which can't be asked for alone
        found.setdefault("cpu", "10m")
    return found


def fill(chance: Chance, spec: Manifest, is_demanding: bool) -> None:
    """Containers and what else counts into the request of a pod."""
    asked = much if is_demanding else small
    spec["containers"] = [container(f"c{number}", asked(chance)) for number in range(chance.choice([1, 1, 1, 2]))]
    if chance.percent(30 if is_demanding else 5):
        spec["initContainers"] = [_first(chance, number) for number in range(chance.randint(1, 3))]
    if chance.percent(15 if is_demanding else 3):
        spec["runtimeClassName"] = RUNTIME
    if is_demanding and chance.percent(12):
        spec["resources"] = {"requests": {"cpu": "4", "memory": chance.choice(["13Gi", "14G"])}}


def _first(chance: Chance, number: int) -> Manifest:
    """An init container; one that restarts is a sidecar."""
    sidecar = {"restartPolicy": "Always"} if chance.percent(45) else {}
    return container(f"i{number}", much(chance) if chance.percent(60) else small(chance), **sidecar)
