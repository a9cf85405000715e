"""The custom resources of a cluster, grouped by the bundle they were rendered with; and which bundles are complete.

Each rendered object has the digest of its bundle, the number of objects in the bundle, and the title of the next object
in the bundle. Existing objects therefore name missing ones.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.parsers import natural


class BundleObjects(msgspec.Struct, frozen=True):
    """The objects of one bundle in the cluster, sorted by kind and name."""

    digest: str
    objects: tuple[Unstructured, ...]

    @property
    def counts(self) -> frozenset[str]:
        """The bundle's object count; several values if an annotation was edited."""
        return frozenset(each.metadata.annotations.get(names.BUNDLE_COUNT, "") for each in self.objects)

    @property
    def is_whole(self) -> bool:
        return self.counts == {str(len(self.objects))}

    @property
    def revision(self) -> str:
        return self.noted(names.BUNDLE_REVISION)

    def noted(self, annotation: str) -> str:
        """The value of the annotation; the first in sort order if the objects differ."""
        return min(each.metadata.annotations.get(annotation, "") for each in self.objects)

    @property
    def title(self) -> str:
        return bundle_title(self.digest, self.revision)

    @property
    def progress(self) -> str:
        """3 of 4 objects of bundle 1a2b3c4d (revision 9f8e7d6) exist (missing: GpuPool/l4)."""
        text = f"{len(self.objects)} of {' or '.join(sorted(self.counts))} objects of {self.title} exist"
        named = self.missing
        if not named:
            return text
        more = self._number_missing - len(named)
        listed = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        return f"{text} (missing: {listed})"

    @property
    def missing(self) -> tuple[str, ...]:
        """Titles of missing objects, if named by existing objects; a few at most."""
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
    """bundle 1a2b3c4d (revision 9f8e7d6): short forms, for display."""
    return f"bundle {digest.removeprefix('sha256:')[:8]}" + (f" (revision {revision[:12]})" if revision else "")


def bundle_digest(resource: Unstructured) -> str | None:
    """Digest of the bundle that an object was rendered with; None for a handwritten object."""
    return resource.metadata.annotations.get(names.BUNDLE_DIGEST)


def by_bundle(resources: Iterable[Unstructured]) -> tuple[tuple[Unstructured, ...], tuple[BundleObjects, ...]]:
    """Objects without a bundle, and the bundles sorted by digest."""
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
