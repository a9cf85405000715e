"""Results of a simulation, collected during the run in bounded memory."""
