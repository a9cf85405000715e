"""A play, and how it is put on the stage."""
