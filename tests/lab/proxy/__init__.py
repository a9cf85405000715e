"""A door to the API server that misbehaves on demand."""
