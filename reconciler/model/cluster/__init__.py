"""What is seen of a cluster: Kubernetes' own shapes, of which only the fields that are used are named."""
