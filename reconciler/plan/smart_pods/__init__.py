"""Smart pods: pods that request machines from Karpenter for demand that Karpenter can't see."""
