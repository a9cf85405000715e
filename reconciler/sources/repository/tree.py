"""A commit as a tree to walk: listed once, with the targets of its links; nothing is ever checked out."""

import msgspec

from reconciler.sources.walk import Node

# Names that one link may lead through, further links included: what takes longer goes in circles, or means to.
LONGEST_WAY = 4_096


class Entry(msgspec.Struct, frozen=True):
    """A line of `git ls-tree -l`; without a size, the repository lacks the object, and `lacking` says why."""

    mode: str
    id: str
    size_bytes: int | None
    lacking: Node

    @property
    def is_link(self) -> bool:
        return self.mode == "120000"

    @property
    def is_submodule(self) -> bool:
        return self.mode == "160000"


class Folder(dict[str, "Folder | Entry"]):
    """What a folder holds, by name; nested, since the paths of all folders could be far longer than the listing."""


class Reached(msgspec.Struct, frozen=True):
    """Where a path leads, links followed: to `what`, or to nothing at `real`, or out of the repository."""

    real: str
    what: Folder | Entry | None
    leaves: bool = False


def entries_of(listing: bytes, lost: Node) -> dict[str, Entry]:
    """By path, what `git ls-tree -r -l -z` says; bytes that are no UTF-8 are kept as Python keeps those of files."""
    entries = {}
    for line in listing.split(b"\0"):
        about, tab, path = line.partition(b"\t")
        if tab:
            mode, _, identity, size = about.decode().split()
            size_bytes = int(size) if size.isdigit() else None
            entries[path.decode("utf-8", "surrogateescape")] = Entry(mode, identity, size_bytes, lost)
    return entries


class GitTree:
    """What lies in the areas of a commit; the root of the repository is the empty path. Targets are by a link's id."""

    def __init__(self, entries: dict[str, Entry], targets: dict[str, str], areas: tuple[str, ...]) -> None:
        self._targets = targets
        self._areas = areas
        self._root = Folder()
        for path, entry in entries.items():
            *above, name = path.split("/")
            folder = self._root
            for part in above:
                inner = folder.setdefault(part, Folder())
                if isinstance(inner, Entry):  # no sound tree has a file and a folder of one name
                    break
                folder = inner
            else:
                folder[name] = entry

    def names(self, folder: str, most: int) -> list[str]:
        reached = self._reached(folder)
        return sorted(reached.what)[:most] if isinstance(reached.what, Folder) else []

    def look(self, folder: str, name: str) -> Node:
        path = f"{folder}/{name}" if folder else name
        reached = self._reached(path)
        itself = self.entry(path)
        points_to = self._targets.get(itself.id, "") if itself else ""
        if reached.leaves or not self._is_inside(reached.real):
            return Node("outside", detail=points_to)
        if isinstance(reached.what, Folder):
            return Node("folder", reached.real)
        if reached.what is None:
            return Node("broken", reached.real, detail=f"a link to {points_to}, which leads to nothing")
        if reached.what.is_submodule:
            return Node("submodule", reached.real)
        if reached.what.size_bytes is None:
            return reached.what.lacking
        return Node("file", reached.real, reached.what.size_bytes, (reached.what.id,))

    def entry(self, path: str) -> Entry | None:
        """What is listed under the very path, be it a link."""
        above, _, name = path.rpartition("/")
        folder = self._reached(above).what
        found = folder.get(name) if isinstance(folder, Folder) else None
        return found if isinstance(found, Entry) else None

    def holds(self, path: str) -> bool:
        """Whether there is such a folder or file, or a link of that name."""
        return self._reached(path).what is not None or self.entry(path) is not None

    def _is_inside(self, real: str) -> bool:
        return any(not area or real == area or real.startswith(f"{area}/") for area in self._areas)

    def _reached(self, path: str) -> Reached:
        pending = path.split("/")[::-1]
        done: list[str] = []
        way: list[Folder | Entry] = [self._root]
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
            if isinstance(found, Entry) and found.is_link:
                target = self._targets[found.id]
                if target.startswith("/"):
                    return Reached("", None, leaves=True)
                pending += target.split("/")[::-1]
            else:
                done.append(part)
                way.append(found)
        return Reached(path, None)
