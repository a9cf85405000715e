"""All features, in the order of their planners. An earlier planner claims subjects first."""

from reconciler.plan.drain.feature import FEATURE as DRAIN
from reconciler.plan.feature.feature import Feature
from reconciler.plan.gpu.feature import FEATURE as GPU
from reconciler.plan.manifests.feature import FEATURE as MANIFESTS
from reconciler.plan.pressure.feature import FEATURE as PRESSURE
from reconciler.plan.scaling.feature import FEATURE as SCALING
from reconciler.plan.smart_pods.feature import FEATURE as SMART_PODS

FEATURES: tuple[Feature, ...] = (MANIFESTS, GPU, PRESSURE, SCALING, DRAIN, SMART_PODS)
