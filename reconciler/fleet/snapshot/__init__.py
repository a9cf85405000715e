"""The what-if snapshot: nodes, bookings, and their rollback."""
