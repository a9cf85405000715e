"""Admission of pods with a GpuClaim."""
