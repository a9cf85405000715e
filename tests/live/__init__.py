"""Tests on the real control plane."""
