"""Pools that are scaled: on the lab, and drawn at random for an imagined cluster."""
