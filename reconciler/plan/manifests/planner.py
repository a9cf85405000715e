"""What templates yield is made and kept, one manifest at a time; then comes what no manifest yields any more."""

from reconciler.model.desired import Manifest
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.manifests.context import Key, ManifestContext
from reconciler.plan.manifests.ensure import ensure
from reconciler.plan.manifests.prune import prune


def manifests(inputs: Inputs, draft: Draft) -> Verdict:
    """Nothing is decided for what stands as it is wished; that costs one walk over each manifest."""
    context = ManifestContext(inputs, draft.fleet)
    verdicts = []
    for each in sorted(inputs.desired.manifests, key=_key):
        if each.pool not in draft.left_out:
            with planning_for(each.pool):
                verdicts.append(ensure(context, each))
    verdicts += prune(context, draft.left_out)
    return Verdict(
        tuple(decision for each in verdicts for decision in each.decisions),
        tuple(consequence for each in verdicts for consequence in each.consequences),
    )


def _key(manifest: Manifest) -> Key:
    return manifest.kind, manifest.namespace, manifest.name
