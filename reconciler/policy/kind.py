"""What a kind is to Kubernetes: names, scope, columns and rules around the fields of `model.kinds`."""

from collections.abc import Callable
from typing import Any

import msgspec

from reconciler.model.fields import LONGEST_NAME
from reconciler.policy.shape import Object, describe

GROUP = "gpu.scheduling"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"


class ValidationRule(msgspec.Struct, frozen=True):
    """What must hold between the fields of one object; the API server checks the same in CEL."""

    code: str
    at: str  # the field that is to be changed, below spec
    sentence: str  # may name fields in braces
    remedy: str
    cel: str
    holds: Callable[[Any], bool]


class PrinterColumn(msgspec.Struct, frozen=True):
    """What `kubectl get` shows."""

    title: str
    type: str
    path: str


class Kind(msgspec.Struct, frozen=True):
    """One kind of object."""

    spec: type[msgspec.Struct]
    plural: str
    short: str
    columns: tuple[PrinterColumn, ...]
    rules: tuple[ValidationRule, ...] = ()
    namespaced: bool = False
    longest_name: int = LONGEST_NAME
    is_policy: bool = True  # written by a platform team; else by users or agents
    report: type[msgspec.Struct] | None = None  # further fields of its status

    @property
    def name(self) -> str:
        return self.spec.__name__

    @property
    def shape(self) -> Object:
        return describe(self.spec)


READY = PrinterColumn("Ready", "string", ".status.conditions[?(@.type=='Ready')].status")
AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp")
MESSAGE = PrinterColumn("Message", "string", ".status.conditions[?(@.type=='Ready')].message")
