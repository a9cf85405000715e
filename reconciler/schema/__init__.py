"""Published descriptions of the kinds: JSON Schema for editors, CustomResourceDefinitions for API servers, and a
reference for people."""
