"""What Karpenter makes of a NodePool: which nodes an edit drifts, and what becomes of them. Pure."""
