"""What a feature reports in a plan beside its decisions."""

from typing import TypeVar


class FeatureReport:
    """Base class of the reports: each feature has its own struct, with a default for each field. Decoders find the
    struct by its tag in plan/reason_catalog.py.
    """

    __slots__ = ()


R = TypeVar("R", bound=FeatureReport)


class Reporting:
    """Lookup in a tuple of reports, which has at most one report of each kind."""

    __slots__ = ()

    reports: tuple[FeatureReport, ...]

    def report(self, kind: type[R]) -> R:
        """The report of that kind, or an empty one."""
        return next((each for each in self.reports if isinstance(each, kind)), None) or kind()
