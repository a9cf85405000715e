"""What a smart pod may say: the restricted Pod Security Standard, field by field, and no service account token.

It asks Karpenter for a node and runs nothing. So beside what the default template writes there is only what a platform
team adds for scheduling, for its registry, and for people who look at the pod.
"""

from reconciler.model import names
from reconciler.model.manifest_rules.shape import (
    AnyList,
    Fields,
    Flag,
    Including,
    ListOf,
    ManifestField,
    Map,
    Number,
    OneOf,
    RestrictedText,
    TextMap,
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

_SECCOMP = Fields((ManifestField("type", OneOf(("RuntimeDefault",)), required=True),))

_USER = (
    ManifestField("runAsUser", _SOMEBODY),
    ManifestField("runAsGroup", _SOMEBODY),
)

_POD_SECURITY = Fields(
    (
        ManifestField("runAsNonRoot", _YES, required=True),
        ManifestField("seccompProfile", _SECCOMP, required=True),
        *_USER,
        ManifestField("fsGroup", _SOMEBODY),
        ManifestField("fsGroupChangePolicy", RestrictedText()),
        ManifestField("supplementalGroups", ListOf(_SOMEBODY)),
    )
)

_CONTAINER_SECURITY = Fields(
    (
        ManifestField("allowPrivilegeEscalation", _NO, required=True),
        ManifestField("capabilities", Fields((ManifestField("drop", Including("ALL"), required=True),)), required=True),
        ManifestField("privileged", _NO),
        ManifestField("readOnlyRootFilesystem", Flag()),
        ManifestField("runAsNonRoot", _YES),
        ManifestField("seccompProfile", _SECCOMP),
        *_USER,
    )
)

_CONTAINER = Fields(
    (
        ManifestField("name", RestrictedText(), required=True),
        ManifestField("image", RestrictedText(), required=True),
        ManifestField("imagePullPolicy", OneOf(("Always", "IfNotPresent", "Never"))),
        ManifestField("resources", Fields((ManifestField("requests", Map()), ManifestField("limits", Map())))),
        ManifestField("securityContext", _CONTAINER_SECURITY, required=True),
        ManifestField("terminationMessagePath", OneOf(("/dev/termination-log",))),
        ManifestField("terminationMessagePolicy", OneOf(("File",))),
    )
)

SPEC = Fields(
    (
        ManifestField("automountServiceAccountToken", _NO, required=True),
        ManifestField("containers", ListOf(_CONTAINER), required=True),
        ManifestField("securityContext", _POD_SECURITY, required=True),
        ManifestField("activeDeadlineSeconds", Number(least=1)),
        ManifestField("affinity", Map()),
        ManifestField("enableServiceLinks", _NO),
        ManifestField("imagePullSecrets", AnyList()),
        ManifestField("nodeSelector", Map()),
        ManifestField("priorityClassName", RestrictedText(refused=("system-",))),
        ManifestField("restartPolicy", OneOf(("Never", "OnFailure", "Always"))),
        ManifestField("schedulerName", RestrictedText()),
        # The namespace's own, which nobody grants anything.
        ManifestField("serviceAccountName", OneOf(("default",))),
        ManifestField("terminationGracePeriodSeconds", Number(least=0)),
        ManifestField("tolerations", AnyList()),
        ManifestField("topologySpreadConstraints", AnyList()),
        ManifestField("dnsPolicy", OneOf(("ClusterFirst", "Default", "None"))),
        ManifestField("serviceAccount", OneOf(("default",)), by_server=True),
        ManifestField("preemptionPolicy", RestrictedText(), by_server=True),
        ManifestField("priority", Number(most=1_000_000_000), by_server=True),
    )
)

METADATA = Fields(
    (
        ManifestField("name", RestrictedText(), required=True),
        ManifestField("namespace", RestrictedText(), required=True),
        ManifestField("labels", Map(), required=True),
        ManifestField("annotations", TextMap(refused=_RUNTIME_ANNOTATIONS)),
        *(
            ManifestField(name, shape, by_server=True)
            for name, shape in (
                ("uid", RestrictedText()),
                ("creationTimestamp", RestrictedText()),
                ("managedFields", AnyList()),
                ("generation", Number()),
                ("resourceVersion", RestrictedText()),
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
