"""What a report is about: which policies, which cluster, when, and by which version."""

from collections import defaultdict

import msgspec

from reconciler.model.bundle import short_revision
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.instant import Instant, timestamp
from reconciler.plan.guards.set_aside import MOST_LISTED
from reconciler.report.document import ReportNote
from reconciler.report.wording import age


class ReportHeader(msgspec.Struct, frozen=True):
    """A base revision where one is compared with."""

    environment: str
    revision: str
    cluster: str  # the name people know it by
    cluster_uid: str
    seen_at: Instant
    now: Instant
    tool_version: str
    base_revision: str = ""
    policies_from: str | None = None  # options of a command that reads the same policies; None: nobody can tell
    is_claimed: bool = False  # the revision is an annotation of custom resources, and approves nothing

    @property
    def policies(self) -> str:
        """prod b7d0a15."""
        return f"{self.environment} {short_revision(self.revision)}".strip()

    @property
    def cluster_text(self) -> str:
        """cluster prod-eu1 (9b3c6f0e) seen 40 s ago."""
        uid = f" ({self.cluster_uid[:8]})" if self.cluster_uid else ""
        seen = f"seen {age(self.seen_at, self.now)}" if self.seen_at else "seen at an unknown time"
        return f"cluster {self.cluster}{uid} {seen}"

    @property
    def headline(self) -> str:
        """All of it, in one line."""
        base = f" on {short_revision(self.base_revision)}" if self.base_revision else ""
        return f"{self.policies}{base}, {self.cluster_text}, reconciler {self.tool_version}"


def snapshot_time(setting: ReportHeader) -> str | None:
    """For programs; None where a file does not tell."""
    return timestamp(setting.seen_at) if setting.seen_at else None


def unread_notes(unread: tuple[Unread, ...]) -> tuple[ReportNote, ...]:
    """What could not be read must not be taken for what is not there."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for each in sorted(unread):
        alike[each.why].append(each.kind)
    return tuple(
        ReportNote(
            "warning",
            f"{', '.join(_once(kinds))} could not be read: {why}. That none are seen does not mean there are none.",
        )
        for why, kinds in alike.items()
    )


def set_aside_notices(observed: Observed) -> tuple[str, ...]:
    """How many objects cannot be understood; which these are their holds tell, but for what is too many."""
    found = len(observed.set_aside)
    if not found:
        return ()
    which = f"; the first {MOST_LISTED} are told of here" if found > MOST_LISTED else ""
    what = "1 object that cannot be understood is" if found == 1 else f"{found} objects that cannot be understood are"
    return (f"{what} set aside, and what depends on it is left alone{which}",)


def _once(kinds: list[str]) -> list[str]:
    """Without those of a kind with a label where all of the kind are told already."""
    return [kind for kind in kinds if (all_of_it := kind.partition(" labelled ")[0]) == kind or all_of_it not in kinds]


# --- Parts of a report by themselves: one that raises is left out, and the report says so; owner of what was left out.
