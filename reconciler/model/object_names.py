"""Which names and namespaces an object of the cluster may have: whatever else a file says never becomes part of a path.

Every kind that is read or written has the name of a DNS subdomain (RFC 1123); a namespace is a DNS label. CSIDriver
alone may have upper case letters in its name.
"""

import re
from functools import lru_cache

from reconciler.model.fields import LONGEST_NAME, NAME, NAMESPACE

_NAME, _NAMESPACE = re.compile(NAME.pattern), re.compile(NAMESPACE.pattern)
_IN_UPPER_CASE = frozenset({"CSIDriver"})
_SHOWN = 60  # characters of a text in a sentence


class BadName(ValueError):
    """No object of the cluster can have this name or be in this namespace; the sentence says which."""


def is_object_name(text: str, kind: str = "") -> bool:
    """Whether an object of the kind may be called so."""
    folded = text.lower() if kind in _IN_UPPER_CASE and text.isascii() else text
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(folded) is not None


@lru_cache(maxsize=4096)
def is_namespace(text: str) -> bool:
    """Whether a namespace may be called so."""
    return len(text) <= LONGEST_NAME and _NAMESPACE.fullmatch(text) is not None


def why_no_object(kind: str, namespace: str, name: str) -> str:
    """Why there can be no such object, as a sentence; nothing where there can. Without a namespace it has none."""
    if not is_object_name(name, kind):
        return f"{shortened(name)} is no name of a {kind}: expected {NAME.words}, at most {LONGEST_NAME} characters"
    if namespace and not is_namespace(namespace):
        return f"{shortened(namespace)} is no namespace of a {kind}: expected {NAMESPACE.words}"
    return ""


def shortened(text: str) -> str:
    """In quotes, with what a terminal would obey written out."""
    sentence = ascii(text)
    return f'"{sentence[1:-1]}"' if len(sentence) <= _SHOWN else f'"{sentence[1:_SHOWN]}..."'
