"""Reason codes of drains: a class of facts each, with the template of its sentence."""
