"""What windows and schedules say at a moment, worked out apart from the planners."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from reconciler.model.instant import Instant
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.model.policy.window import Window


def spare_at(wish: NodeProvisioner, now: Instant) -> int:
    """Free nodes that a pool keeps."""
    warm = [each.warm_nodes or 0 for each in wish.schedules if is_open(each, now)]
    return min(max([wish.warm_nodes, wish.min_unutilized_gpu_nodes, *warm]), wish.max_size)


def min_size_at(wish: NodeProvisioner, now: Instant) -> int:
    """The fewest nodes that a pool keeps."""
    least = [each.min_size or 0 for each in wish.schedules if is_open(each, now)]
    return min(max([wish.min_size, *least]), wish.max_size)


def is_open(window: Window, now: Instant) -> bool:
    """Whether it struck so shortly before, walking on from there."""
    here = datetime.fromtimestamp(now / 1_000, UTC).astimezone(ZoneInfo(window.time_zone))
    strikes = CronSim(window.schedule, here - timedelta(days=2))
    last = None
    for each in strikes:
        if each > here:
            break
        last = each
    return last is not None and now - round(last.timestamp() * 1_000) < window.duration.milliseconds
