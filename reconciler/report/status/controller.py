"""Whether a controller runs, who leads, and when the leader saw the cluster last: as its Lease tells."""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.human_time import span
from reconciler.model.instant import Instant, moment
from reconciler.protocol.leadership import LONGEST_LEASE_MS
from reconciler.report.wording import age

_TITLE = "leases.coordination.k8s.io of the controller"
_ALL_LEASES = "leases.coordination.k8s.io"
_CLOCKS_DIFFER_BY_MS = 30_000  # that of the leader, and that of whoever asks


class ControllerStatus(msgspec.Struct, frozen=True):
    """The Lease of the leader."""

    leader: str = ""  # nothing: nobody holds the Lease
    runs: bool | None = None  # None: not known
    leads_since: Instant | None = None
    renewed_at: Instant | None = None
    seen_cluster_at: Instant | None = None
    why_unknown: str = ""  # the Lease could not be read
    namespace: str = names.OWN_NAMESPACE  # in which the Lease is looked for


def controller_of(observed: Observed) -> ControllerStatus:
    """The Lease is as old as what was seen of the cluster: a file tells nothing of now."""
    ours = (each for each in observed.leases if each.metadata.namespace != names.LEASES_NAMESPACE)
    lease = next((each for each in ours if each.metadata.name == names.LEADER_LEASE), None)
    # An older version wrote all Leases into its dumps as one kind.
    if lease is None and (why := observed.why_unread(_TITLE, _ALL_LEASES)):
        return ControllerStatus(why_unknown=why)
    if lease is None or not lease.spec.holder_identity:
        return ControllerStatus(runs=False, namespace=observed.own_namespace)
    renewed_at = moment(lease.spec.renew_time)
    return ControllerStatus(
        leader=lease.spec.holder_identity,
        runs=_runs(observed, renewed_at, lease.spec.lease_duration_seconds),
        leads_since=moment(lease.spec.acquire_time),
        renewed_at=renewed_at,
        seen_cluster_at=moment(lease.metadata.annotations.seen_at),
    )


def _runs(observed: Observed, renewed_at: Instant | None, lease_seconds: int) -> bool | None:
    """None where it is not known when the Lease was read."""
    if renewed_at is None or not observed.seen_at:
        return None
    ago_ms = observed.seen_at - renewed_at
    return -_CLOCKS_DIFFER_BY_MS <= ago_ms <= min(1_000 * lease_seconds, LONGEST_LEASE_MS) + _CLOCKS_DIFFER_BY_MS


def controller_words(controller: ControllerStatus, now: Instant) -> str:
    """Controller: pod-7f leads for 3 h; it renewed its Lease 2 s ago, and saw the cluster 3 s ago."""
    if controller.why_unknown:
        return f"Controller: not known ({controller.why_unknown})."
    if not controller.leader:
        return f"Controller: none runs: nobody holds Lease/{controller.namespace}/{names.LEADER_LEASE}."
    renewed = f"renewed its Lease {age(controller.renewed_at, now)}" if controller.renewed_at is not None else ""
    saw = f"saw the cluster {age(controller.seen_cluster_at, now)}" if controller.seen_cluster_at is not None else ""
    text = ", and ".join(filter(None, (renewed, saw)))
    its = f"; it {text}" if text else ""
    if controller.runs is False:
        return f"Controller: none runs now: {controller.leader} led last{its}."
    if controller.runs is None:
        return f"Controller: {controller.leader} held the Lease when the cluster was read{its}."
    since = controller.leads_since
    return f"Controller: {controller.leader} leads{_for(since, now)}{its}."


def _for(since: Instant | None, now: Instant) -> str:
    return f" for {span(max(0, now - since) // 1_000)}" if since is not None else ""
