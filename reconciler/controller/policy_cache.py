"""What is wished for, from a source that is followed; owner of what the last bundles were found to say.

A source asks for a judgment of each bundle, on a thread of its own, and for that the bundle is resolved and rendered:
that is kept here, so that the loop need not do it again.
"""

from typing import Protocol

import msgspec

from reconciler.controller.policies import check_bundle
from reconciler.model.bundle import Bundle
from reconciler.model.desired import Desired
from reconciler.model.problem import Problem
from reconciler.policy.environments import NotChosen, chosen
from reconciler.policy.resolve import Resolved
from reconciler.ports import Source, Wished


class Followed(Source, Protocol):
    """A source that also tells what it refused."""

    @property
    def last_refused(self) -> Bundle | None:
        """What was read last, if it was not good."""
        ...


class _Judged(msgspec.Struct, frozen=True):
    bundle: Bundle
    resolved: Resolved


class PolicyCache:
    """A Policies, made before its source, which needs its judgment."""

    def __init__(self, environment: str | None = None) -> None:
        self._environment = environment
        self._source: Followed | None = None
        self._good: tuple[_Judged, ...] = ()  # two: the source may not have taken up the newer one yet
        self._refused: _Judged | None = None
        self._chosen: tuple[Resolved, str, Desired] | None = None

    def judge(self, bundle: Bundle) -> bool:
        """Whether the bundle is good."""
        judged = _Judged(bundle, check_bundle(bundle, only=self._environment).resolved)
        is_good = not judged.resolved.problems
        if is_good:
            self._good = (*self._good, judged)[-2:]
        else:
            self._refused = judged
        return is_good

    def follow(self, source: Followed) -> None:
        self._source = source

    def wish(self, cluster_uid: str) -> Wished:
        """The last good wish for this cluster, the same object while it is the same."""
        if self._source is None:
            return Wished(None)
        latest, refused = self._source.latest(), self._source.last_refused
        problems = self._problems(refused) if refused else ()
        resolved = next((each.resolved for each in self._good if each.bundle is latest), None)
        if resolved is None:
            return Wished(None, problems or latest.problems)
        try:
            return Wished(self._choose(resolved, cluster_uid), problems)
        except NotChosen as why:
            return Wished(None, problems, str(why))

    def _problems(self, refused: Bundle) -> tuple[Problem, ...]:
        judged = self._refused
        return judged.resolved.problems if judged and judged.bundle is refused else refused.problems

    def _choose(self, resolved: Resolved, cluster_uid: str) -> Desired:
        known = self._chosen
        if known is None or known[0] is not resolved or known[1] != cluster_uid:
            known = (resolved, cluster_uid, chosen(resolved, self._environment, cluster_uid))
            self._chosen = known
        return known[2]
