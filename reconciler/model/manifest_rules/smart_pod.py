"""What a smart pod may say: the restricted Pod Security Standard, field by field, and no service account token.

It asks Karpenter for a node and runs nothing. So beside what the default template writes there is only what a platform
team adds for scheduling, for its registry, and for people who look at the pod.
"""

from reconciler.model import names
from reconciler.model.manifest_rules.shape import (
    Entry,
    Fields,
    Flag,
    Including,
    Items,
    Keys,
    ListOf,
    Map,
    Number,
    OneOf,
    Text,
)

_NO, _YES = OneOf((False,)), OneOf((True,))
_SOMEBODY = Number(least=1)  # 0 is root

# What a runtime is told by annotation, where the field of the same meaning is not allowed.
_RUNTIME_ANNOTATIONS = (
    "container.apparmor.security.beta.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "io.kubernetes.cri",
    "k8s.v1.cni.cncf.io/",
)

_SECCOMP = Fields((Entry("type", OneOf(("RuntimeDefault",)), required=True),))

_USER = (
    Entry("runAsUser", _SOMEBODY),
    Entry("runAsGroup", _SOMEBODY),
)

_POD_SECURITY = Fields(
    (
        Entry("runAsNonRoot", _YES, required=True),
        Entry("seccompProfile", _SECCOMP, required=True),
        *_USER,
        Entry("fsGroup", _SOMEBODY),
        Entry("fsGroupChangePolicy", Text()),
        Entry("supplementalGroups", ListOf(_SOMEBODY)),
    )
)

_CONTAINER_SECURITY = Fields(
    (
        Entry("allowPrivilegeEscalation", _NO, required=True),
        Entry("capabilities", Fields((Entry("drop", Including("ALL"), required=True),)), required=True),
        Entry("privileged", _NO),
        Entry("readOnlyRootFilesystem", Flag()),
        Entry("runAsNonRoot", _YES),
        Entry("seccompProfile", _SECCOMP),
        *_USER,
    )
)

_CONTAINER = Fields(
    (
        Entry("name", Text(), required=True),
        Entry("image", Text(), required=True),
        Entry("imagePullPolicy", OneOf(("Always", "IfNotPresent", "Never"))),
        Entry("resources", Fields((Entry("requests", Map()), Entry("limits", Map())))),
        Entry("securityContext", _CONTAINER_SECURITY, required=True),
        Entry("terminationMessagePath", OneOf(("/dev/termination-log",))),
        Entry("terminationMessagePolicy", OneOf(("File",))),
    )
)

SPEC = Fields(
    (
        Entry("automountServiceAccountToken", _NO, required=True),
        Entry("containers", ListOf(_CONTAINER), required=True),
        Entry("securityContext", _POD_SECURITY, required=True),
        Entry("activeDeadlineSeconds", Number(least=1)),
        Entry("affinity", Map()),
        Entry("enableServiceLinks", _NO),
        Entry("imagePullSecrets", Items()),
        Entry("nodeSelector", Map()),
        Entry("priorityClassName", Text(refused=("system-",))),
        Entry("restartPolicy", OneOf(("Never", "OnFailure", "Always"))),
        Entry("schedulerName", Text()),
        # The namespace's own, which nobody grants anything.
        Entry("serviceAccountName", OneOf(("default",))),
        Entry("terminationGracePeriodSeconds", Number(least=0)),
        Entry("tolerations", Items()),
        Entry("topologySpreadConstraints", Items()),
        Entry("dnsPolicy", OneOf(("ClusterFirst", "Default", "None"))),
        Entry("serviceAccount", OneOf(("default",)), by_server=True),
        Entry("preemptionPolicy", Text(), by_server=True),
        Entry("priority", Number(most=1_000_000_000), by_server=True),
    )
)

METADATA = Fields(
    (
        Entry("name", Text(), required=True),
        Entry("namespace", Text(), required=True),
        Entry("labels", Map(), required=True),
        Entry("annotations", Keys(refused=_RUNTIME_ANNOTATIONS)),
        *(
            Entry(name, shape, by_server=True)
            for name, shape in (
                ("uid", Text()),
                ("creationTimestamp", Text()),
                ("managedFields", Items()),
                ("generation", Number()),
                ("resourceVersion", Text()),
            )
        ),
    )
)

# By these a smart pod is known.
LABELS = ((names.COMPONENT, names.SMART_SCHEDULER), (names.MANAGED, "true"))

# Namespaces that no smart pod may be made in: each has pods, rights or a Pod Security level of its own.
RESERVED_NAMESPACES = (
    names.OWN_NAMESPACE,
    names.AGENTS_NAMESPACE,
    names.LEASES_NAMESPACE,
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
)
