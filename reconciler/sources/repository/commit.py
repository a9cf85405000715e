"""One commit of a repository on disk, read as a bundle: its tree listed once, its blobs asked for once."""

from reconciler.model.bundle import Bundle
from reconciler.model.problem import Problem
from reconciler.sources.bundle_builder import Read, bundled
from reconciler.sources.fault import SourceFault
from reconciler.sources.file_names import TEMPLATES_FOLDER
from reconciler.sources.repository.objects import RepositoryObjects
from reconciler.sources.repository.process import Session
from reconciler.sources.repository.tree import GitTree, TreeEntry
from reconciler.sources.walk import LINK_REMEDY, Listing, Root, TreeWalk, joined, obstacle

LONGEST_LINK_BYTES = 1_024
HEADER_BYTES = 128  # before each blob
LFS = b"version https://git-lfs.github.com/spec/v1\n"
NOWHERE = "\0"  # no tree has such a name


class Commit:
    """What one commit holds."""

    def __init__(self, objects: RepositoryObjects, identity: str, session: Session) -> None:
        self._objects = objects
        self._identity = identity
        self._session = session
        self._bounds = session.bounds

    def bundle(self, path: str) -> Bundle:
        """The policies below the path, which may be empty, and the templates in and beside it."""
        listing = self._listing(path)
        contents = self._contents({str(bundle_file.node.stamp[0]) for bundle_file in listing.files})
        read: list[Read] = []
        problems: list[Problem] = []
        for file in listing.files:
            content = contents[str(file.node.stamp[0])]
            if content.startswith(LFS):
                sentence = "is kept in Git LFS, and the repository holds only a pointer to it"
                remedy = "commit the file itself: git lfs untrack, then add it again"
                problems.append(SourceFault.KEPT_ELSEWHERE.problem(file.file, sentence, remedy))
            else:
                read.append((file, content))
        return bundled(self._identity, read, [*listing.problems, *problems])

    def _listing(self, path: str) -> Listing:
        folder, _, name = path.rpartition("/")
        areas = (path, joined(folder, TEMPLATES_FOLDER)) if path else ("",)
        entries = self._objects.entries(self._identity, areas)
        tree = GitTree(entries, self._targets(list(entries.values())), areas)
        if not tree.holds(path):
            sentence = f"has no {path} in {self._identity[:12]}"
            raise self._session.absent(sentence, "name a folder or a file of that revision")
        walk = TreeWalk(tree, self._bounds)
        node = tree.look(folder, name)
        itself = tree.entry(path)
        if itself and itself.is_link:
            sentence = f"is a link in {self._identity[:12]} of {self._session.shown}"
            walk.add(SourceFault.LINK_LEAVES.problem(path, sentence, LINK_REMEDY))
        elif node.kind == "file":
            walk.single(path, node)
        elif node.kind == "folder":
            walk.below(Root("policy", path, path))
            if path:  # nothing is beside the top of a repository
                _walk_templates(walk, tree, folder)
        else:
            walk.add(obstacle(path, node))
        return walk.listing()

    def _targets(self, entries: list[TreeEntry]) -> dict[str, str]:
        """Where each link points, by its id; of one that says nothing, or too much, that it leads nowhere."""
        sizes = {entry.id: entry.size_bytes or 0 for entry in entries if entry.is_link}
        if len(sizes) > self._bounds.files:
            sentence = f"holds {len(sizes):,} links, and a bundle may have {self._bounds.files:,}"
            raise self._session.refuse(SourceFault.TOO_MUCH, sentence, "name a folder that holds only policies")
        contents = self._contents({identity for identity, size in sizes.items() if 0 < size <= LONGEST_LINK_BYTES})
        targets = {identity: contents.get(identity, b"") for identity in sizes}
        return {one: target.decode("utf-8", "surrogateescape") or NOWHERE for one, target in targets.items()}

    def _contents(self, identities: set[str]) -> dict[str, bytes]:
        """Blobs by id. Their sizes are known and within bounds; whoever reads them is held to that."""
        wanted = sorted(identities)
        if not wanted:
            return {}
        most_bytes = self._bounds.total_bytes + len(wanted) * (HEADER_BYTES + LONGEST_LINK_BYTES)
        return self._objects.contents(wanted, most_bytes)


def _walk_templates(walk: TreeWalk, tree: GitTree, parent: str) -> None:
    called = joined(parent, TEMPLATES_FOLDER)
    if not tree.holds(called):
        return
    node = tree.look(parent, TEMPLATES_FOLDER)
    if node.kind == "folder":
        walk.below(Root("template", node.real, called))
    elif node.kind != "file":
        walk.add(obstacle(called, node))
