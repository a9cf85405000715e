"""The same inputs give the same plan: nothing hangs on the order of a set, a process's hashes, or a rounding."""

import ast
from collections.abc import Iterator

from tests.tidy.finding import Finding
from tests.tidy.rules.purity import PURE
from tests.tidy.tree import Tree

# Where thresholds decide: a figure a hair below the mark must not depend on how it was summed.
DECIDING = ("reconciler/plan", "reconciler/fleet")

ORDER_DOES_NOT_MATTER = frozenset({"sorted", "set", "frozenset", "any", "all"})
KEEPS_THE_ORDER = frozenset({"list", "tuple", "enumerate", "iter"})


def sets_are_sorted_before_they_are_walked(tree: Tree) -> list[Finding]:
    """A loop, comprehension or list straight over a set, in a pure folder."""
    rule = "A set is walked in whatever order its hashes give"
    remedy = "walk sorted(...) of it"
    return [
        Finding(path, place.lineno, rule, remedy)
        for path in tree.python(*PURE)
        for place in _walked(tree, path)
        if isinstance(place, ast.Set | ast.SetComp) or _called(place) in {"set", "frozenset"}
    ]


def pure_folders_keep_no_hash(tree: Tree) -> list[Finding]:
    """Calls of hash(), which gives text another number in every process."""
    found = []
    for path in tree.python(*PURE):
        # An object may define its own hash from those of its parts: that one never leaves the process.
        own = {
            id(inner)
            for method in tree.nodes(path, ast.FunctionDef)
            if method.name == "__hash__"
            for inner in ast.walk(method)
        }
        found += [
            Finding(
                path,
                call.lineno,
                "hash() of the same text differs from process to process",
                "use a digest (hashlib) or uuid.uuid5",
            )
            for call in tree.nodes(path, ast.Call)
            if _called(call) == "hash" and id(call) not in own
        ]
    return found


def thresholds_are_integers(tree: Tree) -> list[Finding]:
    """Comparisons with a float, where one side of a mark and the other are different decisions."""
    return [
        Finding(
            path,
            comparison.lineno,
            "A threshold is a float",
            "compare integers: multiply out (100 * used < percent * total), or count in the smaller unit",
        )
        for path in tree.python(*DECIDING)
        for comparison in tree.nodes(path, ast.Compare)
        if any(_holds_float(side) for side in (comparison.left, *comparison.comparators))
    ]


def _walked(tree: Tree, path: str) -> Iterator[ast.expr]:
    """The expressions that are walked in a way that lets their order show."""
    for loop in tree.nodes(path, ast.For):
        yield loop.iter
    indifferent = set()
    for call in tree.nodes(path, ast.Call):
        if _called(call) in ORDER_DOES_NOT_MATTER:
            indifferent |= {id(argument) for argument in call.args}
        if _called(call) in KEEPS_THE_ORDER and call.args:
            yield call.args[0]
    # A set made from a set has lost nothing; dictionaries, lists and generators keep the order they met.
    comprehensions: list[ast.ListComp | ast.DictComp | ast.GeneratorExp] = [
        *tree.nodes(path, ast.ListComp),
        *tree.nodes(path, ast.DictComp),
        *tree.nodes(path, ast.GeneratorExp),
    ]
    for comprehension in comprehensions:
        if id(comprehension) not in indifferent:
            yield from (generator.iter for generator in comprehension.generators)


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _holds_float(side: ast.expr) -> bool:
    """Whether a float is written in the side itself, not somewhere in the arguments of a call."""
    if isinstance(side, ast.UnaryOp):
        return _holds_float(side.operand)
    if isinstance(side, ast.BinOp):
        return _holds_float(side.left) or _holds_float(side.right)
    return isinstance(side, ast.Constant) and isinstance(side.value, float)
