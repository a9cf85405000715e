"""What is found of a node for as long as it and its pods are the same."""
