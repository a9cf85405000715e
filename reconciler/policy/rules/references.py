"""Names must lead to objects."""

from collections.abc import Iterator

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.problem import Problem
from reconciler.policy.rules.context import RuleContext
from reconciler.policy.words import meant


def references_lead_somewhere(wish: RuleContext) -> Iterator[Problem]:
    """Every pool that a policy names is declared."""
    desired = wish.desired
    named: list[tuple[Declared[object], list[str]]]
    for provisioner in desired.provisioners:
        yield from _pool(wish, provisioner, "spec.poolName", provisioner.spec.pool_name)
    named = [(each, each.spec.pool_names) for each in desired.drains]
    named += [(each, each.spec.pool_names) for each in desired.pressures]
    named += [(each, each.spec.pool_names) for each in desired.guards]
    for policy, names in named:
        for number, name in enumerate(names):
            yield from _pool(wish, policy, f"spec.poolNames[{number}]", name)


def _pool(wish: RuleContext, about: Declared[object], path: str, name: str) -> Iterator[Problem]:
    if (name == "*" and path != "spec.poolName") or ("GpuPool", name) in wish.written or not wish.is_whole:
        return
    known = [each for kind, each in wish.written if kind == "GpuPool"]
    close = meant(name, known)
    text = f'{path}: there is no GpuPool "{name}"' + (f'; did you mean "{close}"?' if close else "")
    problem = wish.problem(about, path, ("RC301", text, "" if close else "declare it, or name another"))
    yield msgspec.structs.replace(problem, field=path)
