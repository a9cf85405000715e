"""Safety invariants, checked on the actual writes, independently of the planners."""
