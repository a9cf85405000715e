"""Typed explanations of a plan for one subject; reconciler/report/explain formats them."""
