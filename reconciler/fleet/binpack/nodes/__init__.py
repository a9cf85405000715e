"""Chooses nodes to launch and fills them with pods."""
