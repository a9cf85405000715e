"""A Scenario as the YAML that a person would have written: only what is not said by a default."""

from typing import Any

from reconciler.model.quantity import Duration, Money, Percent, Quantity
from reconciler.policy.kind import API_VERSION
from reconciler.policy.shape import ListOf, MapOf, Object, Shape, describe
from reconciler.schema.generated import as_yaml
from reconciler.simulate.scenario.spec import Scenario


def scenario_text(name: str, scenario: Scenario) -> str:
    """Read again, it is the same scenario."""
    spec = _plain(describe(Scenario), scenario)
    return as_yaml({"apiVersion": API_VERSION, "kind": "Scenario", "metadata": {"name": name}, "spec": spec})


def _plain(shape: Shape, value: Any) -> Any:
    match shape:
        case Object(fields=fields):
            held = [(field, getattr(value, field.attribute)) for field in fields]
            return {
                field.name: _plain(field.shape, own) for field, own in held if field.required or own != field.default
            }
        case ListOf(item=item):
            return [_plain(item, each) for each in value]
        case MapOf(value=inner):
            return {key: _plain(inner, each) for key, each in sorted(value.items())}
    return str(value) if isinstance(value, Duration | Money | Percent | Quantity) else value
