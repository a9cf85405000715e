"""The custom resources of a cluster by the bundle that each was rendered with, and which bundles are whole.

Each rendered object has the digest of its bundle, the number of objects in the bundle, and the title of the object that
follows it in the bundle. Objects that are there therefore name objects that are missing.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.parsers import natural


class BundleObjects(msgspec.Struct, frozen=True):
    """The objects that one bundle has in the cluster, sorted by kind and name."""

    digest: str
    objects: tuple[Unstructured, ...]

    @property
    def counts(self) -> frozenset[str]:
        """How many objects the bundle has; several counts where an annotation was edited."""
        return frozenset(each.metadata.annotations.get(names.BUNDLE_COUNT, "") for each in self.objects)

    @property
    def is_whole(self) -> bool:
        return self.counts == {str(len(self.objects))}

    @property
    def revision(self) -> str:
        return self.noted(names.BUNDLE_REVISION)

    def noted(self, annotation: str) -> str:
        """The value of the annotation; the first in order where the objects differ."""
        return min(each.metadata.annotations.get(annotation, "") for each in self.objects)

    @property
    def title(self) -> str:
        return bundle_title(self.digest, self.revision)

    @property
    def progress(self) -> str:
        """3 of 4 objects of bundle 1a2b3c4d (revision 9f8e7d6) are there (missing: GpuPool/l4)."""
        text = f"{len(self.objects)} of {' or '.join(sorted(self.counts))} objects of {self.title} are there"
        named = self.missing
        if not named:
            return text
        more = self._number_missing - len(named)
        listed = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        return f"{text} (missing: {listed})"

    @property
    def missing(self) -> tuple[str, ...]:
        """Titles of missing objects, as far as the objects that are there name them; a few at most."""
        there = {f"{each.kind}/{each.name}" for each in self.objects}
        named = {each.metadata.annotations.get(names.BUNDLE_NEXT, "") for each in self.objects} - {""}
        return tuple(sorted(named - there)[:_MOST_NAMED])

    @property
    def _number_missing(self) -> int:
        counts = [count for each in self.counts if len(each) < _LONGEST_COUNT and (count := natural(each)) is not None]
        return max(counts, default=0) - len(self.objects)


_MOST_NAMED = 5
_LONGEST_COUNT = 10  # digits


def bundle_title(digest: str, revision: str) -> str:
    """bundle 1a2b3c4d (revision 9f8e7d6): short forms, for people."""
    return f"bundle {digest.removeprefix('sha256:')[:8]}" + (f" (revision {revision[:12]})" if revision else "")


def bundle_digest(resource: Unstructured) -> str | None:
    """The bundle that an object was rendered with; None for an object that somebody wrote by hand."""
    return resource.metadata.annotations.get(names.BUNDLE_DIGEST)


def by_bundle(resources: Iterable[Unstructured]) -> tuple[tuple[Unstructured, ...], tuple[BundleObjects, ...]]:
    """The objects of no bundle, and the bundles sorted by digest."""
    free: list[Unstructured] = []
    together: defaultdict[str, list[Unstructured]] = defaultdict(list)
    for each in sorted(resources, key=lambda one: (one.kind, one.name)):
        digest = bundle_digest(each)
        if digest is None:
            free.append(each)
        else:
            together[digest].append(each)
    return tuple(free), tuple(
        BundleObjects(digest, tuple(unstructureds)) for digest, unstructureds in sorted(together.items())
    )
