"""Namespaces: other pods may be meant by the labels of theirs."""

import msgspec

from reconciler.model.cluster.metadata import Metadata


class Namespace(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A namespace; of it, its name and labels."""

    metadata: Metadata

    @property
    def name(self) -> str:
        return self.metadata.name
