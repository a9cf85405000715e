"""A Karpenter for an imagined cluster: it decides in the order in which Karpenter 1.14 does, and takes its time.

Left out: the consolidation policy Balanced (it is taken for WhenEmptyOrUnderutilized), reserved capacity, overlays and
buffers, dynamic resources, volumes that keep a machine alive after its drain, and the repair of unhealthy nodes, which
is off by default.
"""
