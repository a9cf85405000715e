"""Smart pods on the lab: the controller as it is run, and Karpenter."""
