"""A real kube-scheduler beside our fleet: what each says of the same pods on the same nodes."""
