"""All labels, annotations and taints that reconciler sets or reads."""

FIELD_MANAGER = "reconciler"
# Namespaces. Each has one purpose, so that rights in one namespace give nothing in the others.
OWN_NAMESPACE = "gpu-system"  # the controller, its Lease and its ConfigMaps; `--namespace` overrides
SMART_PODS_NAMESPACE = "gpu-smart-pods"  # smart pods; a GpuPool may override; Pod Security: restricted
AGENTS_NAMESPACE = "gpu-agents"  # the node agent, which needs the kubelet's socket: the only privileged namespace
LEASES_NAMESPACE = "gpu-leases"  # Leases of devices that are lent to claims; no pods

LEADER_LEASE = "reconciler"  # in the controller's namespace; held by the leader
SERVICE_ACCOUNT = "reconciler"  # of the controller, in its namespace
MEMORY_CONFIG_MAP = "reconciler-memory"  # prefix of the names of its parts
STATUS_CONFIG_MAP = "reconciler-status"

WEBHOOK_SERVICE = "reconciler-webhook"  # in the controller's namespace
WEBHOOK_CERTIFICATES = "reconciler-webhook"  # a Secret in the controller's namespace, also for the extender
WEBHOOK_CONFIGURATION = "reconciler-webhook"
WEBHOOK = "claims.gpu.scheduling"  # name of the webhook in its configuration
EXTENDER_SERVICE = "reconciler-extender"  # in the controller's namespace
SCHEDULER_CERTIFICATES = "gpu-scheduler-tls"  # a Secret in the controller's namespace, for the second scheduler
AGENTS_SERVICE = "reconciler-agents"  # in the controller's namespace
AGENTS_AUTHORITIES = "reconciler-agents-ca"  # a ConfigMap in the controller's namespace, for clients of the Service
PERMIT_KEYS = "reconciler-permit-keys"  # a Secret in the controller's namespace: keys that sign permits of agents
APP_NAME = "app.kubernetes.io/name"

OURS = "gpu.scheduling/"
EVENT_SOURCE = f"{OURS}reconciler"  # reportingController of reconciler's Events

# Labels
POOL = f"{OURS}pool"  # on nodes without Karpenter, and on objects rendered for a pool
PROVISIONER = f"{OURS}provisioner"
MANAGED = f"{OURS}managed"  # "true" on every object that reconciler manages: the inventory
GPU_TYPE = f"{OURS}gpu-type"
COMPONENT = f"{OURS}component"  # "smart-scheduler" on smart pods
GPU_MODEL = f"{OURS}gpu-model"  # the requested GPU model of a smart pod
ARRIVED = f"{OURS}arrived"  # "true" on a node whose startup taint was removed: no smart pod is placed there
TRIGGER_TYPE = f"{OURS}trigger-type"  # why a smart pod was created
SMART_SCHEDULER = "smart-scheduler"
GPU_SCALING = "gpu-scaling"

# Annotations
ENVIRONMENT = f"{OURS}environment"  # of the policies that render the object; other environments do not touch it
BUNDLE_DIGEST = f"{OURS}bundle-digest"  # digest of all policies that were rendered together as custom resources
BUNDLE_COUNT = f"{OURS}bundle-count"  # the number of these policies
BUNDLE_REVISION = f"{OURS}bundle-revision"  # the revision they were rendered from
BUNDLE_NEXT = f"{OURS}bundle-next"  # the next object of the same bundle, as KIND/NAME
ADOPTED = f"{OURS}adopted"  # "true" on a NodePool that was taken over: its template is kept, to avoid drift
FROZEN_UNTIL = f"{OURS}frozen-until"
FROZEN_REASON = f"{OURS}frozen-reason"
CLAIM = f"{OURS}claim"  # on a pod, and on a Lease of a GPU that is lent to the pod: the name of the GpuClaim
ALLOCATED = f"{OURS}allocated"  # on a bound pod with a GpuClaim: its node and the ids of its GPUs, node-a:0,1
DEVICES = f"{OURS}devices"  # on a bound pod with a GpuClaim: the UUIDs of its GPUs, comma-separated; "" until known
RELEASING = f"{OURS}releasing"  # on a pod that was not bound: node and version of the Leases that are released
PODS_WOKEN_AT = f"{OURS}pods-woken-at"  # on a node, unix seconds: an event that wakes unschedulable pods
DEVICE = f"{OURS}device"  # on a Lease of a GPU: the id of the GPU on its node
DEVICE_UUID = f"{OURS}device-uuid"  # on a Lease of a GPU: the UUID of the GPU; absent if unknown
ELASTIC = f"{OURS}elastic"  # set by the user: the least and the most of each elastic resource, cpu=1..4,memory=1Gi..8Gi
HOLDER = f"{OURS}pod"  # on a Lease of a GPU: namespace/name of the pod that holds the GPU
SEEN_AT = f"{OURS}seen-at"  # on the leader's Lease, RFC 3339: time of its last snapshot of the cluster
WAIT_FOR_CAPACITY = f"{OURS}wait-for-capacity"  # "true" on a pod that is to get the scheduling gate at its creation
WAITS_FOR = f"{OURS}waits-for"  # on a gated pod: the pool in which capacity is requested, and the state of the request

# Annotations of pods that write a checkpoint before their eviction
CHECKPOINT = f"{OURS}checkpoint"  # set by the user: the time that a checkpoint needs, such as 120s
EVICT_AT = f"{OURS}evict-at"  # set by reconciler, RFC 3339: requests a checkpoint; the latest time of the eviction
CHECKPOINTED_AT = f"{OURS}checkpointed-at"  # set by the pod, RFC 3339 or unix seconds: time of its last checkpoint

# Annotations of smart pods
ORIGINAL_REQUEST = f"{OURS}original-request"
PHASE = f"{OURS}phase"
RETRIES = f"{OURS}retries"  # how many other offerings were tried before
NODE_CLAIM = f"{OURS}node-claim"  # the NodeClaim that Karpenter launched for the smart pod, as last seen
SINCE = f"{OURS}since"  # unix seconds: when it began to wait for a node, if not at its creation

# A scheduling gate: the pod waits until a suitable node is usable
CAPACITY_GATE = f"{OURS}capacity"

# Taints
DELETION_TIME = f"{OURS}deletion-time"
DRAIN_CANDIDATE = f"{OURS}drain-candidate"
DRAINING = f"{OURS}draining"
ARRIVING = f"{OURS}arriving"

# A PriorityClass below all others: any pod may preempt a smart pod
SMART_PODS_PRIORITY = "gpu-scheduling-smart-pods"

GPU_SCHEDULER = "gpu-scheduler"  # schedulerName of pods with a GpuClaim

NVIDIA_GPU = "nvidia.com/gpu"
UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
MIRROR_POD = "kubernetes.io/config.mirror"

# Labels of volumes, including deprecated ones
REGION = "topology.kubernetes.io/region"
ZONE_BEFORE = "failure-domain.beta.kubernetes.io/zone"
REGION_BEFORE = "failure-domain.beta.kubernetes.io/region"

# Annotations of PersistentVolumeClaims
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"

KARPENTER_POOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
DISRUPTED = "karpenter.sh/disrupted"
UNREGISTERED = "karpenter.sh/unregistered"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
POOL_HASH = "karpenter.sh/nodepool-hash"

# Taints with these keys show that a component is removing the node
TAKING = (DELETION_TIME, DRAINING, DISRUPTED)

# Taints by what sets them while the node exists: a pool cannot give them to its nodes. Startup taints are removed
# again, so a pool may have those of a new node.
_OF_KUBERNETES = "not-ready unreachable unschedulable memory-pressure disk-pressure pid-pressure network-unavailable"
TAINT_OWNERS = {
    **dict.fromkeys((DELETION_TIME, DRAIN_CANDIDATE, DRAINING, ARRIVING), "reconciler"),
    **dict.fromkeys((DISRUPTED, UNREGISTERED), "Karpenter"),
    **{f"node.kubernetes.io/{name}": "Kubernetes" for name in (*_OF_KUBERNETES.split(), "out-of-service")},
    **{f"node.cloudprovider.kubernetes.io/{name}": "Kubernetes" for name in ("uninitialized", "shutdown")},
}
STARTUP_TAINTS = frozenset(
    {ARRIVING, "node.kubernetes.io/not-ready", "node.kubernetes.io/network-unavailable"}
    | {"node.cloudprovider.kubernetes.io/uninitialized"}
)

POOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_TO_EVICT_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"  # comma-separated
DAEMONSET_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"  # "true": counts as a DaemonSet pod
ENABLE_DS_EVICTION = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"  # "false": is not evicted from its node
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
