"""Recurring times: a window opens whenever its schedule strikes, and stays open for its duration."""

from typing import Annotated

from msgspec import Struct

from reconciler.model.fields import Says, Shaped, Unit, Within
from reconciler.model.quantity import Duration


class Window(Struct, frozen=True, rename="camel", kw_only=True):
    """A recurring time in which nodes may begin to leave."""

    schedule: Annotated[
        str,
        Says("When it opens: minute, hour, day, month and weekday, as cron writes them."),
        Shaped(r"^\S+( +\S+){4}$", 'five fields, such as "0 20 * * *"'),
    ]
    time_zone: Annotated[
        str,
        Says("Time zone of the schedule."),
        Shaped(r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$", "a zone such as Europe/Berlin"),
    ] = "UTC"
    duration: Annotated[Duration, Says("How long it stays open.")]


class SizeSchedule(Window, frozen=True, rename="camel", kw_only=True):
    """Larger sizes of a pool at a recurring time."""

    min_size: Annotated[int | None, Says("Fewest nodes at this time."), Within(0, 100_000), Unit("nodes")] = None
    warm_nodes: Annotated[
        int | None, Says("Free nodes that are bought ahead at this time."), Within(0, 100_000), Unit("nodes")
    ] = None
