"""Tests of reconciler/sources/rendering."""
