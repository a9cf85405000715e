"""The first planner: what templates yield is made and kept, adopted when asked, and pruned when agreed."""
