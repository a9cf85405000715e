"""All features, in the order of their planners: an earlier one has the first choice of subjects."""

from reconciler.plan.drain.feature import FEATURE as DRAIN
from reconciler.plan.feature.feature import Feature
from reconciler.plan.manifests.feature import FEATURE as MANIFESTS
from reconciler.plan.scaling.feature import FEATURE as SCALING
from reconciler.plan.smart_pods.feature import FEATURE as SMART_PODS

FEATURES: tuple[Feature, ...] = (MANIFESTS, SCALING, DRAIN, SMART_PODS)
