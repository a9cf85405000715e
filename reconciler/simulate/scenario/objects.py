"""Objects that a scenario writes out, each the YAML that somebody would have applied."""

from reconciler.policy.tree import plain
from reconciler.policy.yaml.yaml_text import read
from reconciler.protocol.preconditions import Object


def why_unreadable(text: str) -> str:
    """Nothing where it is one object."""
    nodes, problems = read("", text.encode())
    if problems:
        return problems[0].sentence
    if len(nodes) != 1:
        return f"one object is expected, and here are {len(nodes)}"
    body = plain(nodes[0])
    metadata = body.get("metadata") if isinstance(body, dict) else None
    is_named = isinstance(metadata, dict) and metadata.get("name")
    return "" if is_named and body.get("kind") and body.get("apiVersion") else "this is no object of a cluster"


def object_of(text: str) -> Object:
    """One of which it is known that it can be read."""
    (node,), _ = read("", text.encode())
    body: Object = plain(node)
    if body["kind"] == "Pod":
        body.setdefault("status", {"phase": "Pending"})
    return body
