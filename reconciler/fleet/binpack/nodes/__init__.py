"""Which nodes are bought in the places, and which pods fill each."""
