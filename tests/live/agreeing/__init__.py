"""Tests of what we foretell against what the real parts do on the lab."""
