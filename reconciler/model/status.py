"""What every kind's status says: how far it was followed, and what stands in the way."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import MergeKey, Says, Shaped, Within


class Condition(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One thing that holds of the object, or does not, in the form that Kubernetes gives conditions."""

    type: Annotated[
        str,
        Says("What may hold: Ready, say."),
        Within(1, 316),
        Shaped(
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            "a condition's type, such as Ready",
        ),
    ]
    status: Annotated[Literal["True", "False", "Unknown"], Says("Whether it holds.")]
    observed_generation: Annotated[
        int | None, Says("The generation of the object that was judged."), Within(0, 2**53)
    ] = None
    last_transition_time: Annotated[
        str,
        Says("When it began to hold, or ceased to."),
        Within(20, 35),
        Shaped(
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$",
            "a time, such as 2026-11-02T08:00:00Z",
        ),
    ]
    reason: Annotated[
        str,
        Says("Why, in one word for programs."),
        Within(1, 1024),
        Shaped(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "one word in CamelCase"),
    ]
    message: Annotated[str, Says("Why, in a sentence for people."), Within(0, 32_768)]


class ObjectStatus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How far the object was followed, and what stands in the way."""

    observed_generation: Annotated[
        int | None, Says("The generation of the object that was last read; -1 before any was."), Within(most=2**53)
    ] = None
    conditions: Annotated[list[Condition], Says("What holds of the object."), Within(most=16), MergeKey(("type",))] = (
        msgspec.field(default_factory=list)
    )
    problems: Annotated[
        list[Annotated[str, Within(0, 1024)]], Says("What is wrong with it, a sentence each."), Within(most=100)
    ] = msgspec.field(default_factory=list)


class PolicyStatus(ObjectStatus, frozen=True, rename="camel", kw_only=True):
    """How far the policy was followed, and what stands in the way."""

    bundle: Annotated[
        str | None,
        Says("Digest of the bundle that this status speaks of; absent where the object is part of no bundle."),
        Within(0, 128),
    ] = None
