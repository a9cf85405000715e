"""What rules between objects look at: the wish, and where each of its values stands."""

import msgspec

from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.model.problem import Problem
from reconciler.policy.tree import Mark, problem


class RuleContext(msgspec.Struct, frozen=True):
    """One environment's objects."""

    desired: Desired
    marks: dict[tuple[str, str], dict[str, Mark]]  # by kind and name, then by path
    written: frozenset[tuple[str, str]]  # kind and name of all objects, those that could not be read included
    by_field: bool = False  # people find a value by its field, and not by its line
    is_whole: bool = True  # False: a document could not be read, so that an object may be in it

    def problem(self, about: Declared[object], path: str, texts: tuple[str, str, str]) -> Problem:
        """A problem with a value of an object; `texts` is code, sentence and remedy."""
        marks = self.marks[about.kind, about.name]
        while path and path not in marks:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return problem(marks[path], *texts)

    def warning(self, about: Declared[object], path: str, texts: tuple[str, str, str]) -> Problem:
        """A problem that keeps nobody from using the policies."""
        return msgspec.structs.replace(self.problem(about, path, texts), severity="warning")

    def pools_named(self, names: list[str]) -> list[Declared[GpuPool]]:
        """The pools that a policy names; all of them for a star."""
        return [pool for pool in self.desired.pools if "*" in names or pool.name in names]

    def place(self, about: Declared[object], path: str = "") -> str:
        """file:line of a value, or its object, to point from one place to another."""
        if self.by_field:
            return self.marks[about.kind, about.name][""].file
        mark = self.marks[about.kind, about.name].get(path) or self.marks[about.kind, about.name][""]
        return f"{mark.file}:{mark.line}"
