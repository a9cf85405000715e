"""What a GpuPool is told beside how it stands: whether machines for it could not be bought lately."""

from collections.abc import Sequence

import msgspec

from reconciler.model.plan.shortage import Shortage
from reconciler.plan.capacity.shortages import short_words
from reconciler.plan.status.conditions import Condition, ObjectCondition

_KIND = "CapacityShort"
_ENOUGH = Condition(_KIND, False, "NothingRefused", "every way to buy may be tried")


def with_shortages(standing: ObjectCondition, shortages: Sequence[Shortage]) -> ObjectCondition:
    """The same standing with the condition; each way says until when it is left out, the last one why."""
    if not shortages:
        return msgspec.structs.replace(standing, further=(_ENOUGH,))
    told = f"no machine came by these ways: {short_words(shortages)}; those who wait are asked for in others"
    return msgspec.structs.replace(standing, further=(Condition(_KIND, True, shortages[-1].why, told),))
