"""How fast asks of agents are answered."""
