"""A NodePool's spec as Karpenter takes it: with its defaults, and with the lists and maps that may be left out."""

from typing import Any

from reconciler.model.cluster.unstructured import Unstructured

Plain = dict[str, Any]

# From Karpenter's definition of a NodePool; an API server fills them in, a file may lack them.
_EXPIRES = "720h"
_CONSOLIDATES: Plain = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
_BUDGETS = ({"nodes": "10%"},)


def live_spec(pool: Unstructured) -> Plain:
    """A copy with defaults and without nulls; lists and maps that must be there are."""
    spec: Plain = _without_nulls(pool.spec)
    template = _map(spec.pop("template", {}))
    inner = _map(template.pop("spec", {}))
    metadata = _map(template.pop("metadata", {}))
    disruption = {**_CONSOLIDATES, **_map(spec.pop("disruption", {}))}
    disruption.setdefault("budgets", [dict(each) for each in _BUDGETS])
    return {
        **spec,
        "limits": _map(spec.get("limits", {})),
        "template": {
            **template,
            "metadata": {
                **metadata,
                "labels": _map(metadata.get("labels", {})),
                "annotations": _map(metadata.get("annotations", {})),
            },
            "spec": {
                **inner,
                "nodeClassRef": _map(inner.get("nodeClassRef", {})),
                "requirements": _list(inner.get("requirements", ())),
                "taints": _list(inner.get("taints", ())),
                "startupTaints": _list(inner.get("startupTaints", ())),
                "expireAfter": inner.get("expireAfter", _EXPIRES),
            },
        },
        "disruption": disruption | {"budgets": _list(disruption["budgets"])},
    }


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _without_nulls(each) for name, each in value.items() if each is not None}
        case list() | tuple():
            return [_without_nulls(each) for each in value if each is not None]
    return value


def _map(value: Any) -> Plain:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    """Only maps stand in the lists of a NodePool; what an API server would never have taken is left out."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list | tuple) else []
