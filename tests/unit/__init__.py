"""Tests of one module each, without the lab."""
