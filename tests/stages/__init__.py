"""Worlds on the lab in which things happen that several tests judge."""
