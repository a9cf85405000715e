"""How pods are asked to leave: with time to save their work, and how that is called off."""
