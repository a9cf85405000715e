"""Tests of reconciler/simulate/actors/karpenter."""
