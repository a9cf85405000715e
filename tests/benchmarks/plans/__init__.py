"""What plans cost: of a fleet at rest, and of one that is scaled."""
