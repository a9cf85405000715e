"""Small scenarios in which Karpenter buys machines, on the lab and on the imagined cluster."""
