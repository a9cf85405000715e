"""A commit as a tree to walk: listed once, with the targets of its links; nothing is ever checked out."""

import msgspec

from reconciler.sources.walk import ResolvedPath

# Names that one link may lead through, further links included: what takes longer goes in circles, or means to.
LONGEST_WAY = 4_096


class TreeEntry(msgspec.Struct, frozen=True):
    """A line of `git ls-tree -l`; without a size, the repository lacks the object, and `lacking` says why."""

    mode: str
    id: str
    size_bytes: int | None
    lacking: ResolvedPath

    @property
    def is_link(self) -> bool:
        return self.mode == "120000"

    @property
    def is_submodule(self) -> bool:
        return self.mode == "160000"


class Folder(dict[str, "Folder | TreeEntry"]):
    """What a folder holds, by name; nested, since the paths of all folders could be far longer than the listing."""


class Reached(msgspec.Struct, frozen=True):
    """Where a path leads, links followed: to `target`, or to nothing at `real`, or out of the repository."""

    real: str
    target: Folder | TreeEntry | None
    leaves: bool = False


def entries_of(listing: bytes, lost: ResolvedPath) -> dict[str, TreeEntry]:
    """By path, what `git ls-tree -r -l -z` says; bytes that are no UTF-8 are kept as Python keeps those of files."""
    entries = {}
    for line in listing.split(b"\0"):
        about, tab, path = line.partition(b"\t")
        if tab:
            mode, _, identity, size = about.decode().split()
            size_bytes = int(size) if size.isdigit() else None
            entries[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, identity, size_bytes, lost)
    return entries


class GitTree:
    """What lies in the areas of a commit; the root of the repository is the empty path. Targets are by a link's id."""

    def __init__(self, entries: dict[str, TreeEntry], targets: dict[str, str], areas: tuple[str, ...]) -> None:
        self._targets = targets
        self._areas = areas
        self._root = Folder()
        for path, entry in entries.items():
            *above, name = path.split("/")
            folder = self._root
            for part in above:
                inner = folder.setdefault(part, Folder())
                if isinstance(inner, TreeEntry):  # no sound tree has a file and a folder of one name
                    break
                folder = inner
            else:
                folder[name] = entry

    def names(self, folder: str, most: int) -> list[str]:
        reached = self._reached(folder)
        return sorted(reached.target)[:most] if isinstance(reached.target, Folder) else []

    def look(self, folder: str, name: str) -> ResolvedPath:
        path = f"{folder}/{name}" if folder else name
        reached = self._reached(path)
        itself = self.entry(path)
        points_to = self._targets.get(itself.id, "") if itself else ""
        if reached.leaves or not self._is_inside(reached.real):
            return ResolvedPath("outside", detail=points_to)
        if isinstance(reached.target, Folder):
            return ResolvedPath("folder", reached.real)
        if reached.target is None:
            return ResolvedPath("broken", reached.real, detail=f"a link to {points_to}, which leads to nothing")
        if reached.target.is_submodule:
            return ResolvedPath("submodule", reached.real)
        if reached.target.size_bytes is None:
            return reached.target.lacking
        return ResolvedPath("file", reached.real, reached.target.size_bytes, (reached.target.id,))

    def entry(self, path: str) -> TreeEntry | None:
        """What is listed under the very path, be it a link."""
        above, _, name = path.rpartition("/")
        folder = self._reached(above).target
        found = folder.get(name) if isinstance(folder, Folder) else None
        return found if isinstance(found, TreeEntry) else None

    def holds(self, path: str) -> bool:
        """Whether there is such a folder or file, or a link of that name."""
        return self._reached(path).target is not None or self.entry(path) is not None

    def _is_inside(self, real: str) -> bool:
        return any(not area or real == area or real.startswith(f"{area}/") for area in self._areas)

    def _reached(self, path: str) -> Reached:
        pending = path.split("/")[::-1]
        done: list[str] = []
        way: list[Folder | TreeEntry] = [self._root]
        for _ in range(LONGEST_WAY):
            if not pending:
                return Reached("/".join(done), way[-1])
            part = pending.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                if not done:
                    return Reached("", None, leaves=True)
                done.pop()
                way.pop()
                continue
            here = way[-1]
            found = here.get(part) if isinstance(here, Folder) else None
            if found is None:
                return Reached("/".join([*done, part]), None)
            if isinstance(found, TreeEntry) and found.is_link:
                target = self._targets[found.id]
                if target.startswith("/"):
                    return Reached("", None, leaves=True)
                pending += target.split("/")[::-1]
            else:
                done.append(part)
                way.append(found)
        return Reached(path, None)
