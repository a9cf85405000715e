"""Smart pods: capacity from Karpenter for demand that it can't see."""
