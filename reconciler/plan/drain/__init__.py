"""The drain planner: drains underutilized nodes, many at a time, and deletes the empty nodes."""
