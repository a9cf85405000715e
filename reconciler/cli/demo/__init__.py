"""How the demo looks."""
