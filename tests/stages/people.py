"""People on the lab, each with exactly what `reconciler rbac --person` prints for their part."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.schema.rights.page import person_page, reading_page
from tests.lab.lab import Lab
from tests.stages.granted import HOME, Rights, account, bound, path_of


@contextmanager
def acting_as(lab: Lab, part: str) -> Iterator[Path]:
    """A kubeconfig of theirs, while in the block; they may look at everything besides."""
    looking = Rights(lab.admin, reading_page((), HOME))
    rights = Rights(lab.admin, person_page(part))
    try:
        with bound(lab.admin, rights):
            yield lab.site.kubeconfig(part, account(lab.admin, path_of(lab.admin, "pods")))
    finally:
        rights.take_back()
        looking.take_back()
