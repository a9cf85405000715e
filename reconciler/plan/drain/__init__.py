"""The planner that empties nodes which are little used, many at a time, and lets them go."""
