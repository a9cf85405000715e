"""How decisions become writes: one function a verb, each with what the API server must confirm."""
