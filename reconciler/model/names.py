"""Every label, annotation and taint that is ours or that we go by, once."""

FIELD_MANAGER = "reconciler"
# Namespaces. Each has one purpose, so that a right in one of them is worth nothing in the others.
OWN_NAMESPACE = "gpu-system"  # the controller, its Lease and its ConfigMaps, unless `--namespace` says otherwise
SMART_PODS_NAMESPACE = "gpu-smart-pods"  # smart pods, unless a GpuPool says otherwise; Pod Security: restricted
AGENTS_NAMESPACE = "gpu-agents"  # the node agent, for the kubelet's socket: the only privileged namespace
LEASES_NAMESPACE = "gpu-leases"  # Leases of devices that are lent to claims; no pods

LEADER_LEASE = "reconciler"  # in the controller's namespace: its holder leads
SERVICE_ACCOUNT = "reconciler"  # of the controller, in its namespace
MEMORY_CONFIG_MAP = "reconciler-memory"  # its parts are named after it
STATUS_CONFIG_MAP = "reconciler-status"

OURS = "gpu.scheduling/"
EVENT_SOURCE = f"{OURS}reconciler"  # reportingController of our Events

# Labels
POOL = f"{OURS}pool"  # on nodes without Karpenter, and on what is rendered for a pool
PROVISIONER = f"{OURS}provisioner"
MANAGED = f"{OURS}managed"  # "true" on every object that we keep: the inventory
GPU_TYPE = f"{OURS}gpu-type"
COMPONENT = f"{OURS}component"  # "smart-scheduler" on smart pods
GPU_MODEL = f"{OURS}gpu-model"  # what a smart pod asks for
ARRIVED = f"{OURS}arrived"  # "true" on a node that we opened to pods: no smart pod goes there
TRIGGER_TYPE = f"{OURS}trigger-type"  # why there is a smart pod
SMART_SCHEDULER = "smart-scheduler"
GPU_SCALING = "gpu-scaling"

# Annotations
ENVIRONMENT = f"{OURS}environment"  # of the policies that yield the object: no other environment touches it
BUNDLE_DIGEST = f"{OURS}bundle-digest"  # of all policies that were rendered as custom resources together
BUNDLE_COUNT = f"{OURS}bundle-count"  # how many those are
BUNDLE_REVISION = f"{OURS}bundle-revision"  # what they were rendered from
BUNDLE_NEXT = f"{OURS}bundle-next"  # the object that follows in the same bundle, as KIND/NAME
ADOPTED = f"{OURS}adopted"  # "true" on a NodePool that was someone else's: its template is not made to drift
FROZEN_UNTIL = f"{OURS}frozen-until"
FROZEN_REASON = f"{OURS}frozen-reason"
CLAIM = f"{OURS}claim"  # on a pod: the GpuClaim that it is for
SEEN_AT = f"{OURS}seen-at"  # on the Lease of the leader, RFC 3339: when it saw the cluster last
WAIT_FOR_CAPACITY = f"{OURS}wait-for-capacity"  # "true" on a pod that is to get the gate as it is made
WAITS_FOR = f"{OURS}waits-for"  # on a pod that waits: the pool that capacity is asked for in, and how that stands

# Annotations of pods that save their work before they are evicted
CHECKPOINT = f"{OURS}checkpoint"  # by its user: the time it needs for that, as 120s
EVICT_AT = f"{OURS}evict-at"  # ours, RFC 3339: it is asked to save its work, and evicted then at the latest
CHECKPOINTED_AT = f"{OURS}checkpointed-at"  # by the pod itself, RFC 3339 or unix seconds: when it saved its work last

# Annotations of smart pods
CREATED_BY = f"{OURS}created-by"
PURPOSE = f"{OURS}purpose"
CLEANUP_AFTER = f"{OURS}cleanup-after"
ORIGINAL_REQUEST = f"{OURS}original-request"
PHASE = f"{OURS}phase"
RETRIES = f"{OURS}retries"  # how often another way to buy was tried before this one
NODE_CLAIM = f"{OURS}node-claim"  # the machine that Karpenter bought for it, as last seen
SINCE = f"{OURS}since"  # unix seconds: when it began to wait for a machine, if not at its creation

# A scheduling gate: the pod waits until a node that fits is usable
CAPACITY_GATE = f"{OURS}capacity"

# Taints
DELETION_TIME = f"{OURS}deletion-time"
DRAIN_CANDIDATE = f"{OURS}drain-candidate"
DRAINING = f"{OURS}draining"
ARRIVING = f"{OURS}arriving"

# A PriorityClass below all others: whoever needs the room of a smart pod gets it at once
SMART_PODS_PRIORITY = "gpu-scheduling-smart-pods"

NVIDIA_GPU = "nvidia.com/gpu"
UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
MIRROR_POD = "kubernetes.io/config.mirror"

# Labels of volumes, the older ones too
REGION = "topology.kubernetes.io/region"
ZONE_BEFORE = "failure-domain.beta.kubernetes.io/zone"
REGION_BEFORE = "failure-domain.beta.kubernetes.io/region"

# Annotations of claims for volumes
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"

KARPENTER_POOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
DISRUPTED = "karpenter.sh/disrupted"
UNREGISTERED = "karpenter.sh/unregistered"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
POOL_HASH = "karpenter.sh/nodepool-hash"

# By a taint with one of these somebody takes a node away
TAKING = (DELETION_TIME, DRAINING, DISRUPTED)
POOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_TO_EVICT_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"  # names, by commas
DAEMONSET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"  # "true": as if a DaemonSet had made it
ENABLE_DS_EVICTION = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"  # "false": not asked to leave its node
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
