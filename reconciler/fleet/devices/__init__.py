"""The GPUs of nodes: boards, the choice of devices, fragmentation, and which GPUs are lent."""
