"""The flags that a Cluster Autoscaler runs with, from its Deployment as it was applied or as a cluster tells it."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

PROGRAM = "cluster-autoscaler"


# Flags about nodes that go which are true or false.
_SWITCHES = frozenset(
    {
        "cordon-node-before-terminating",
        "daemonset-eviction-for-empty-nodes",
        "daemonset-eviction-for-occupied-nodes",
        "force-delete-failed-nodes",
        "force-delete-unregistered-nodes",
        "ignore-daemonsets-utilization",
        "ignore-mirror-pods-utilization",
        "scale-down-delay-type-local",
        "scale-down-enabled",
        "scale-down-unready-enabled",
        "skip-nodes-with-custom-controller-pods",
        "skip-nodes-with-local-storage",
        "skip-nodes-with-system-pods",
    }
)


class NoFlags(ValueError):
    """A sentence: why there are none to be found."""


class Flags(msgspec.Struct, frozen=True):
    """By their names without dashes; one that is given several times has several values."""

    of: Mapping[str, tuple[str, ...]]

    def value(self, name: str) -> str | None:
        """The last one, which counts."""
        names = self.of.get(name)
        return names[-1] if names else None

    def is_false(self, name: str) -> bool:
        """As Go reads it; a flag that is not given is neither."""
        return self.value(name) in {"false", "f", "F", "0", "FALSE", "False"}

    def is_true(self, name: str) -> bool:
        """The same."""
        return self.value(name) in {"true", "t", "T", "1", "TRUE", "True"}


def documents(content: bytes) -> list[Any]:
    """What JSON or YAML holds. Raises NoFlags."""
    try:
        if content.lstrip()[:1] in {b"{", b"["}:
            return [msgspec.json.decode(content)]
        return list(yaml.load_all(content, Loader=_LOADER))
    except (msgspec.MsgspecError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as fault:
        raise NoFlags(f"it is neither JSON nor YAML: {' '.join(str(fault).split())}") from None


def flags_in(documents: list[Any], only: str = "") -> Flags:
    """`documents`: manifests, or lists of them; `only`: namespace/name of the one that is meant. Raises NoFlags."""
    found = [each for document in documents for each in _running(document) if only in {"", _title(each[0])}]
    if not found:
        where = f"Deployment {only}" if only else "container"
        raise NoFlags(f"no {where} that runs {PROGRAM} is there")
    if len(found) > 1:
        text = ", ".join(sorted(_title(body) for body, _ in found))
        raise NoFlags(f"several run {PROGRAM} ({text}): say which one as NAMESPACE/NAME, or give a file of one")
    return Flags(_read(found[0][1]))


def _running(document: Any) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """The workloads that run it, and with which words."""
    if not isinstance(document, dict):
        return
    for item in document.get("items") or ():
        yield from _running(item)
    for container in _containers(document):
        command, args = (_words(container.get(key)) for key in ("command", "args"))
        words = [*command, *args]
        named = [str(container.get("image", "")), *words[:1]]
        if any(PROGRAM in each.rpartition("/")[2] for each in named):
            yield document, words


def _containers(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: Any = document
    for key in ("spec", "template", "spec", "containers"):
        found = found.get(key) if isinstance(found, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _words(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _title(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    about = metadata if isinstance(metadata, dict) else {}
    return f"{about.get('namespace') or 'default'}/{about.get('name', '')}"


def _read(words: list[str]) -> dict[str, tuple[str, ...]]:
    """--name=value, --name value, and --name, which is true; one dash does as well. The word after a switch is not its
    value, as in Go."""
    result: dict[str, tuple[str, ...]] = {}
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if not word.startswith("-") or word in {"-", "--"}:
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        takes_next = at < len(words) and not words[at].startswith("-") and name not in _SWITCHES
        if not has_value and takes_next:
            value, at = words[at], at + 1
        elif not has_value:
            value = "true"
        result[name] = (*result.get(name, ()), value.strip("'\""))
    return result
