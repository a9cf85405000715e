"""How things stand, at one look."""
