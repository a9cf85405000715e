"""Every planted tree: for each rule at least one that breaks it and one that keeps it."""

from tests.tidy.plant import Plant
from tests.tidy.plants import (
    dead_files,
    determinism,
    documents,
    layers,
    lengths,
    mirror,
    purity,
    reasons,
    running,
    wording,
)

PLANTS: tuple[Plant, ...] = (
    *purity.PLANTS,
    *determinism.PLANTS,
    *lengths.PLANTS,
    *wording.PLANTS,
    *dead_files.PLANTS,
    *documents.PLANTS,
    *layers.PLANTS,
    *running.PLANTS,
    *mirror.PLANTS,
    *reasons.PLANTS,
)
