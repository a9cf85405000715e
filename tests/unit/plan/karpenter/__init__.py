"""Tests of reconciler/plan/karpenter."""
