"""A simulated Karpenter: decides in the same order as Karpenter 1.14, with delays.

Not simulated: the consolidation policy Balanced (treated as WhenEmptyOrUnderutilized), reserved capacity, overlays
and buffers, dynamic resources, volumes that delay termination after a drain, and node repair, which is off by
default.
"""
