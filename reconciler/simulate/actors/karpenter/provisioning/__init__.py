"""What to buy for pods that no node would take: Karpenter's own way of filling nodes."""
