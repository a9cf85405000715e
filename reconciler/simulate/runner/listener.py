"""Who is told of what goes wrong in a play, and of what people do."""

from collections.abc import Callable

from reconciler.model.instant import Instant

Tell = Callable[[Instant, str], None]
