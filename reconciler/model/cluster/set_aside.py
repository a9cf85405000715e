"""Objects that cannot be understood: each is set aside with a reason, and all others are planned.

Where an object that is set aside counts, a stand-in takes its place that keeps what could be read and claims the rest:
a pod keeps its node busy and full, a node counts in its pool and is cordoned, a PodDisruptionBudget allows nothing in
its namespace.
"""

from typing import Literal

import msgspec

# Malformed: a field has another type or shape than Kubernetes gives it. Quantity: an amount is no quantity of
# Kubernetes, or out of bounds. Depth and Number: JSON that is nested too deeply, or a number beyond 64 bits. TooLarge:
# more terms, tolerations or labels than are looked at (bounds.py).
Code = Literal["Malformed", "Quantity", "Depth", "Number", "TooLarge"]


ANY_POOL = "*"


class DecodeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Why an object cannot be understood."""

    code: Code
    field: str = ""  # spec.containers[0].resources.requests.cpu
    detail: str = ""

    @property
    def why(self) -> str:
        """spec.containers[0].resources.requests.cpu: 99999... is no quantity."""
        return ": ".join(part for part in (self.field, self.detail or self.code) if part)


class SetAside(msgspec.Struct, frozen=True, gc=False, order=True, omit_defaults=True):
    """An object that cannot be understood."""

    kind: str
    namespace: str
    name: str  # nothing where that could not be read either
    uid: str = ""
    code: Code = "Malformed"
    field: str = ""
    detail: str = ""
    node: str = ""  # the node that the object is, is on or is about
    pool: str = ""  # the pool whose NodePool or policy the object is; ANY_POOL: it may be part of any

    @property
    def title(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name or "(without a name)") if part)

    @property
    def refusal(self) -> DecodeRefusal:
        """Why."""
        return DecodeRefusal(self.code, self.field, self.detail)
