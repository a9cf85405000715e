"""Waiting GpuClaims of the overview, by reason."""

from reconciler.plan.gpu.claim_report import WaitingClaims
from reconciler.report.claim_text import REASON_WORDS
from reconciler.report.wording import counted


def waiting_words(waiting: WaitingClaims) -> str:
    """Such as 2 claims with 5 pods, such as team-a/train: no node has the GPUs free."""
    first = f"{waiting.first.namespace}/{waiting.first.name}"
    example = f", such as {first}" if waiting.claims > 1 else f" ({first})"
    number = f"{counted(waiting.claims, 'claim')} with {counted(waiting.pods, 'pod')}"
    return f"{number}{example}: {REASON_WORDS.get(waiting.reason, waiting.reason)}"


def waiting_json(waiting: WaitingClaims) -> dict[str, str | int]:
    first = f"{waiting.first.namespace}/{waiting.first.name}"
    return {"reason": waiting.reason, "claims": waiting.claims, "pods": waiting.pods, "first": first}
