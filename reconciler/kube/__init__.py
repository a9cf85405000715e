"""The only folder that speaks to an API server."""
