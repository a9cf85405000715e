"""Waiting GpuClaims of the overview, by reason."""

from collections.abc import Iterator

import msgspec

from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.gpu.claim_report import ClaimReport, ClaimUse, code_of
from reconciler.report.claim_text import REASON_WORDS
from reconciler.report.wording import counted, grouped


class WaitingClaims(msgspec.Struct, frozen=True):
    """Claims whose pods wait for the same reason."""

    reason: str
    claims: int
    pods: int
    first: str  # namespace and name of the first claim

    @property
    def words(self) -> str:
        """Such as 2 claims with 5 pods, such as team-a/train: no node has the GPUs free."""
        example = f", such as {self.first}" if self.claims > 1 else f" ({self.first})"
        number = f"{counted(self.claims, 'claim')} with {counted(self.pods, 'pod')}"
        return f"{number}{example}: {REASON_WORDS.get(self.reason, self.reason)}"


def waiting_claims(scene: PlanningResult) -> Iterator[WaitingClaims]:
    """One entry for each reason, by reason. A claim counts with the reason of its first waiting pod."""
    waiting = [each for each in scene.plan.report(ClaimReport).claims if each.wait is not None]
    for reason, uses in sorted(grouped(waiting, _reason).items()):
        first = uses[0].claim
        yield WaitingClaims(reason, len(uses), sum(each.waiting for each in uses), f"{first.namespace}/{first.name}")


def _reason(use: ClaimUse) -> str:
    return code_of(use.wait) if use.wait is not None else ""
