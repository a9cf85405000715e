"""Tests of reconciler/simulate/api_server."""
