"""Tests of GpuClaims on the lab."""
