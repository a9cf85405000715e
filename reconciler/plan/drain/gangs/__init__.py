"""Pods that are moved together or not at all: who they are, whether and where all of them could go, and how they do."""
