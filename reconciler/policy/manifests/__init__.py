"""Manifests of a pool: the values that its template receives, and validation of what the template renders."""
