"""How files that a person named are written: each whole, or none."""
