"""Model of Karpenter: which nodes drift after an edit of a NodePool, and what happens to them. Pure."""
