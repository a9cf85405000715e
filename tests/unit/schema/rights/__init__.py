"""Tests of reconciler/schema/rights."""
