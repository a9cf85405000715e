"""Planning in a process of its own, so that a busy planner costs the endpoints of its parent nothing."""
