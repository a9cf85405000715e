"""Report header: policies, cluster, time, and version."""

import msgspec

from reconciler.model.bundle import short_revision
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.instant import Instant, timestamp
from reconciler.plan.guards.set_aside import MOST_LISTED
from reconciler.report.document import ReportNote
from reconciler.report.wording import age, grouped


class ReportHeader(msgspec.Struct, frozen=True):
    """Header of a report, with the base revision if there is one."""

    environment: str
    revision: str
    cluster: str  # display name
    cluster_uid: str
    seen_at: Instant
    now: Instant
    tool_version: str
    base_revision: str = ""
    policies_from: str | None = None  # options with which a command reads the same policies; None if unknown
    is_claimed: bool = False  # the revision is an annotation of custom resources, and cannot be approved

    @property
    def policies(self) -> str:
        """Such as prod b7d0a15."""
        return f"{self.environment} {short_revision(self.revision)}".strip()

    @property
    def cluster_text(self) -> str:
        """Such as cluster prod-eu1 (9b3c6f0e), snapshot taken 40 s ago."""
        uid = f" ({self.cluster_uid[:8]})" if self.cluster_uid else ""
        seen = f"snapshot taken {age(self.seen_at, self.now)}" if self.seen_at else "snapshot time unknown"
        return f"cluster {self.cluster}{uid}, {seen}"

    @property
    def headline(self) -> str:
        base = f" on {short_revision(self.base_revision)}" if self.base_revision else ""
        return f"{self.policies}{base}, {self.cluster_text}, reconciler {self.tool_version}"


def time_json(moment: Instant | None) -> str | None:
    """A time for programs; None if unknown."""
    return timestamp(moment) if moment is not None else None


def unread_notes(unread: tuple[Unread, ...]) -> tuple[ReportNote, ...]:
    """Notes about kinds that could not be read. Unread objects must not be taken for absent objects."""
    return tuple(
        ReportNote(
            "warning", f"{', '.join(_once(alike))} are unknown: {why}. reconciler assumes that such objects may exist."
        )
        for why, alike in grouped(sorted(unread), lambda each: each.why).items()
    )


def set_aside_notices(observed: Observed) -> tuple[str, ...]:
    """Number of objects that cannot be parsed. Their holds name them, up to a limit."""
    found = len(observed.set_aside)
    which = f"; the first {MOST_LISTED} are listed" if found > MOST_LISTED else ""
    objects = f"{found} objects that cannot be parsed are ignored, and objects that depend on them do not change{which}"
    one = "1 object that cannot be parsed is ignored, and objects that depend on it do not change"
    return (one if found == 1 else objects,) if found else ()


def _once(unread: list[Unread]) -> list[str]:
    """The kinds, without label-selected kinds whose whole kind is listed."""
    kinds = [each.kind for each in unread]
    return [kind for kind in kinds if (all_of_it := kind.partition(" labelled ")[0]) == kind or all_of_it not in kinds]
