"""Tests of GpuClaims in the simulator."""
