"""Stories of an imagined cluster that are drawn by chance, and what is left of one that fails."""
