"""Policies that are custom resources, as a Source: the owner of the last good bundle of them.

The Observer lists and watches them with everything else; here it is only judged what they come to. That costs nothing
while they stay the same, so that it can be asked for in each cycle, and needs no thread.
"""

from collections.abc import Callable

from reconciler.model.bundle import Bundle
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.problem import Problem
from reconciler.policy.resolve import WHERE, bundle_of

_NOTHING_YET = Problem(WHERE, 0, 0, "RC508", "no good policies have been read yet", "see what was refused", width=1)


class ResourcePolicies:
    """`observe` says what is seen now; `judge` whether a whole bundle is good; `receive` is called before that."""

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
        """The last good bundle; before the first, one that is a problem and nothing else. Never blocks."""
        self._look()
        return self._latest

    def start(self) -> None:
        """There is no thread to start: whoever observes does the reading."""

    def stop(self) -> None:
        """Nothing goes on."""

    def wait_until_read(self, timeout_seconds: float) -> bool:
        """They are read with the rest of the cluster: once that is, they are."""
        return True

    @property
    def last_refused(self) -> Bundle | None:
        """What stands in the cluster now, if it is not good."""
        self._look()
        return self._refused

    def _look(self) -> None:
        observed = self._observe()
        if observed.policies is self._policies and observed.unread == self._unread:
            return
        self._policies, self._unread = observed.policies, observed.unread
        bundle = bundle_of(observed)
        if bundle == self._judged:  # only a status was written: templates need not be rendered again
            return
        self._judged = bundle
        if not bundle.problems:
            self._receive(observed)
        if bundle.problems or not self._judge(bundle):
            self._refused = bundle
        else:
            self._latest, self._refused = bundle, None
