"""What the API server does with fields of the kinds that templates yield, and no object tells."""

from typing import Any

import msgspec

Path = tuple[str, ...]

_NODE = ("spec", "template", "spec")


class Traits(msgspec.Struct, frozen=True):
    """Of one kind."""

    # What the server writes where nothing is said.
    defaults: dict[Path, Any] = {}
    # What it leaves out when it stores the object, since that says no more than nothing.
    unstored: dict[Path, Any] = {}
    # Maps that have one owner and are replaced as a whole.
    atomic_maps: frozenset[Path] = frozenset()
    # What can't be changed once it is there: the field, and all within.
    fixed: tuple[Path, ...] = ()
    # Built-in kinds are stored without what is empty; custom resources as they were written.
    drops_empty: bool = True
    # Where the server and its plug-ins fill in so much that what is not said can't be told from what was taken back.
    filled_in: bool = False


_TRAITS = {
    "NodePool": Traits(
        drops_empty=False,
        defaults={
            ("spec", "disruption"): {
                "budgets": [{"nodes": "10%"}],
                "consolidateAfter": "0s",
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
            },
            ("spec", "disruption", "budgets"): [{"nodes": "10%"}],
            ("spec", "disruption", "consolidationPolicy"): "WhenEmptyOrUnderutilized",
            (*_NODE, "expireAfter"): "720h",
        },
        atomic_maps=frozenset({("spec", "template", "metadata", "labels")}),
        fixed=((*_NODE, "nodeClassRef", "group"), (*_NODE, "nodeClassRef", "kind")),
    ),
    "Pod": Traits(atomic_maps=frozenset({("spec", "nodeSelector")}), fixed=(("spec",),), filled_in=True),
    "PodDisruptionBudget": Traits(atomic_maps=frozenset({("spec", "selector")})),
    "PriorityClass": Traits(
        defaults={("preemptionPolicy",): "PreemptLowerPriority"},
        fixed=(("value",), ("preemptionPolicy",)),
        unstored={("globalDefault",): False},
    ),
}


def traits(kind: str) -> Traits:
    return _TRAITS.get(kind, Traits())


def fixed_fields(kind: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the paths that can't be changed."""
    fixed = [".".join(each) for each in traits(kind).fixed]
    return tuple(path for path in paths if any(f"{path}.".startswith((f"{each}.", f"{each}[")) for each in fixed))
