"""Policies and templates from the NodePools that a cluster has, such that a plan of them makes no node drift."""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.importer.autoscaler.flags import Flags
from reconciler.importer.autoscaler.policy import drain_policy
from reconciler.importer.imported_pool import ImportedPool, is_ours, read_imported_pool
from reconciler.importer.machines import machines
from reconciler.importer.notes import ImportNote, notes
from reconciler.importer.policy_text import policy_text
from reconciler.importer.pool_gpus import NOTHING_SAYS, why_without
from reconciler.importer.supported_fields import can_say
from reconciler.importer.template_text import template_text
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.policy.rules.kinds.gpu_pool import GPU_POOL
from reconciler.policy.words import did_you_mean

NODE_POOLS, NODES = "nodepools.karpenter.sh", "nodes"
TEMPLATES = "templates/"

_HEADER = """\
{#
  The NodePool that was found in the cluster. What no field of a GpuPool says stands here as it was found; all other
  lines are those of the default template, node_pool.yaml.j2, and follow the policy.
#}
"""


class Skipped(msgspec.Struct, frozen=True):
    """A NodePool that was left alone."""

    name: str
    why: str


class Imported(msgspec.Struct, frozen=True):
    """Files by their paths, and what is to be said about them."""

    files: tuple[Text, ...] = ()
    notes: tuple[ImportNote, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def with_drain_policy(self, flags: Flags) -> "Imported":
        """And what a Cluster Autoscaler was told."""
        text, notes = drain_policy(flags)
        files = tuple(sorted((*self.files, text), key=lambda each: each.path))
        return msgspec.structs.replace(self, files=files, notes=(*self.notes, *notes))

    @property
    def bundle(self) -> Bundle:
        """The same as it would be read from the folder that the files are written to."""
        policies = tuple(text for text in self.files if not text.path.startswith(TEMPLATES))
        templates = (text for text in self.files if text.path.startswith(TEMPLATES))
        named = (Text(text.path.removeprefix(TEMPLATES), text.content, text.path) for text in templates)
        return Bundle("import", policies, tuple(named))


def imported(observed: Observed, names: Sequence[str] = ()) -> Imported:
    """The NodePools of these names, or all that have GPUs."""
    pools = {pool.name: pool for pool in observed.node_pools}
    living = machines(observed)
    files: list[Text] = []
    import_notes: list[ImportNote] = []
    skipped: list[Skipped] = []
    for name in sorted(set(names) or pools):
        if name not in pools:
            skipped.append(Skipped(name, f"there is no NodePool of this name{did_you_mean(name, pools)}"))
            continue
        imported_pool = read_imported_pool(pools[name], living.get(name, ()))
        if why := _why_not(observed, imported_pool, name in names):
            skipped.append(Skipped(name, why))
            continue
        files += _files(imported_pool)
        import_notes += notes(imported_pool, observed.why_unread(NODES))
    return Imported(tuple(sorted(files, key=lambda text: text.path)), tuple(import_notes), tuple(skipped))


def _files(pool: ImportedPool) -> Iterator[Text]:
    yield Text(pool.policy_file, policy_text(pool).encode())
    kept = pool.portion.kept
    if kept.anything:
        yield Text(TEMPLATES + pool.template, (_HEADER + template_text(kept)).encode())


def _why_not(observed: Observed, pool: ImportedPool, is_named: bool) -> str:
    """Why a NodePool is left alone; nothing when it is to be imported."""
    class_ref = pool.portion.said["nodeClassRef"]
    without, longest = why_without(pool.spec, pool.gpus), GPU_POOL.longest_name
    reasons = (
        (not can_say("nodeClassRef", {**class_ref, "name": pool.name}), "it bears a name that no NodePool can have"),
        (len(pool.name) > longest, f"its name has more than the {longest} characters of a GpuPool's"),
        (pool.live.metadata.deletion_timestamp, "it is being deleted"),
        (is_ours(pool.live), "it is ours already"),
        (_has_policy(observed.policies, pool.name), "the cluster has a GpuPool of this name"),
        (not can_say("nodeClassRef", class_ref), "it names no node class that could exist"),
        # Who names it says that it is one of GPUs, unless its nodes say otherwise.
        (without and not (is_named and without == NOTHING_SAYS), without),
    )
    return next((why for applies, why in reasons if applies), "")


def _has_policy(policies: Sequence[Unstructured], name: str) -> bool:
    return any(policy.kind == "GpuPool" and policy.name == name for policy in policies)
