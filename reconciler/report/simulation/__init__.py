"""Results of a simulation, for people and programs."""
