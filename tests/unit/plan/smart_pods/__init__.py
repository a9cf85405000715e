"""Tests of reconciler/plan/smart_pods."""
