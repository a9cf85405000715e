"""The scaling planner: the number of nodes of each pool."""
