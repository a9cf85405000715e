"""Node provisioning: how many nodes a pool shall have."""
