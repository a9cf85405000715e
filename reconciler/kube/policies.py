"""Policies from custom resources, as a Source: the owner of their last valid bundle.

The Observer lists and watches them with all other kinds; this module only validates them. Unchanged policies cost
nothing, so they can be checked in each cycle without a thread.
"""

from collections.abc import Callable

from reconciler.model.bundle import Bundle
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.problem import Problem
from reconciler.policy.resolve import WHERE, bundle_of

_NOTHING_YET = Problem(WHERE, 0, 0, "RC508", "no valid policies read yet", "check the refused policies", width=1)


class ResourcePolicies:
    """Policies from the cluster. `observe` returns the current snapshot; `judge` validates a complete bundle.

    `receive` is called before `judge`.
    """

    has_read = True  # policies are read when the whole cluster is

    def __init__(
        self,
        observe: Callable[[], Observed],
        judge: Callable[[Bundle], bool],
        receive: Callable[[Observed], None] = lambda _: None,
    ) -> None:
        self._observe = observe
        self._judge = judge
        self._receive = receive
        self._latest = Bundle("", (), problems=(_NOTHING_YET,), by_field=True)
        self._refused: Bundle | None = None
        self._policies: tuple[Unstructured, ...] | None = None
        self._unread: tuple[Unread, ...] = ()
        self._judged: Bundle | None = None

    def latest(self) -> Bundle:
        """The last valid bundle; before the first, a bundle with only a problem. Never blocks."""
        self._look()
        return self._latest

    def start(self) -> None:
        """There is no thread to start: the observer reads the policies."""

    def stop(self) -> None:
        """Nothing to stop."""

    @property
    def last_refused(self) -> Bundle | None:
        """The current bundle in the cluster, if it is invalid."""
        self._look()
        return self._refused

    def _look(self) -> None:
        observed = self._observe()
        if observed.policies is self._policies and observed.unread == self._unread:
            return
        self._policies, self._unread = observed.policies, observed.unread
        bundle = bundle_of(observed)
        if bundle == self._judged:  # only a status has changed: templates need not be rendered again
            return
        self._judged = bundle
        if not bundle.problems:
            self._receive(observed)
        if bundle.problems or not self._judge(bundle):
            self._refused = bundle
        else:
            self._latest, self._refused = bundle, None
