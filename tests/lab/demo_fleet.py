"""The fleet that `make lab` shows."""

from tests.lab import capacity, fleet
from tests.lab.lab import Lab


def load_demo_fleet(lab: Lab) -> None:
    """Twelve GPU nodes: eight for training, five of them busy, and four for inference, each half used."""
    toleration = "nvidia.com/gpu"
    taint = {"key": toleration, "value": "true", "effect": "NoSchedule"}
    training = fleet.Shape(capacity.P4D, pool="a100-training", taints=[taint])
    inference = fleet.Shape(capacity.G6, pool="l4-inference", capacity_type="spot", taints=[taint])
    lab.load([*fleet.nodes(8, training, "train"), *fleet.nodes(4, inference, "infer")])
    jobs = [fleet.Pod(f"train-job-{n}", "team-a", gpus=8, cpu="64").on(f"train-{n}") for n in range(5)]
    replicas = [fleet.Pod(f"chat-{n}", "team-a", gpus=2, cpu="8").on(f"infer-{n}") for n in range(4)]
    lab.load(pod.tolerating(toleration).manifest() for pod in [*jobs, *replicas])
    for node in ("train-7", "infer-3"):
        lab.admin.wait_for("nodes", node, fleet.is_ready)
