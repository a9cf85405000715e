"""How long something lasts, as an option: 90s, 30m or 24h."""

from typing import Any

import click

from reconciler.model.quantity import Duration


class LastingType(click.ParamType[Duration]):
    """Reads 24h; nothing that is over at once."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        if isinstance(value, Duration):
            return value
        try:
            duration = Duration.parse(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if not duration.milliseconds:
            self.fail("it would be over at once; write 4h, say.", param, ctx)
        return duration
