"""Fleets and pods at random, of everything that a scheduler's filters look at; the same seed gives the same fleet."""
