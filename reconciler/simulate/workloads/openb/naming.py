"""Names of an openb trace as Kubernetes wants them."""

import re

_UNFIT = re.compile(r"[^a-z0-9-]+")


def named(text: str) -> str:
    """As the name of an object."""
    return _UNFIT.sub("-", text.lower()).strip("-") or "unnamed"


def model_of(text: str) -> str:
    """As a label: V100M32 is v100m32."""
    return text.strip().lower()
