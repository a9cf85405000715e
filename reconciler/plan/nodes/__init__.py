"""Shared by all planners: who may act on a node, and what pod evictions wait for."""
