"""Those who act on an imagined cluster, each as slowly and imperfectly as in a real one.

Left out: Deployments and what else makes ReplicaSets, Jobs that give up after so many failures, pods that fail of
themselves, and kubelets that evict.
"""
