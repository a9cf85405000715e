"""Why something is released, or stays."""

from reconciler.plan.reasons import Because

TAINT_OFF = Because("TaintReleased", "{object} bears the taint {key}:{effect}, which is ours: it is taken off.")
LABELS_OFF = Because("LabelsReleased", "{object} bears labels of ours ({keys}): they are taken off.")
FREEZE_OFF = Because("FreezeReleased", "{object} is frozen, which says nothing without us: that is taken off.")
GATE_OFF = Because("GateReleased", "{object} waits at the gate {gate}, which nobody else opens: it is opened.")
EVICTION_OFF = Because("EvictionReleased", "{object} carries {key}, and is not evicted by us: that is taken off.")
OBJECT_OFF = Because("ObjectReleased", "{object} was made for a pool: it is deleted.")
STILL_USED = Because(
    "ReleasedWhenUnused",
    "{object} was made for a pool, and {pods} pods name it: it stays, as others of theirs need it.",
)

REASONS = (TAINT_OFF, LABELS_OFF, FREEZE_OFF, GATE_OFF, EVICTION_OFF, OBJECT_OFF, STILL_USED)
