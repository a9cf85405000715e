"""What would make a node a candidate for a drain that is none: each reason with the nearest change that lifts it."""
