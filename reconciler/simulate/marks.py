"""What the parts of an imagined cluster tell each other on its objects, and no real cluster knows."""

from reconciler.model import names

RUN_SECONDS = f"{names.OURS}simulated-run-seconds"  # annotation of a pod: how long after its start it succeeds
SAVE_SECONDS = f"{names.OURS}simulated-save-seconds"  # annotation of a pod: how long it takes to save its work
WORKLOAD = f"{names.OURS}simulated-workload"  # label of a pod: which workload of the scenario it is of
GPU_MILLI = f"{names.OURS}simulated-gpu-milli"  # annotation of a pod: how much of its one GPU it uses, if not all
