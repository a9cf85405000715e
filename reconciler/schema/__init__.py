"""What others are told of the kinds: editors by JSON Schema, API servers by definitions, people by a reference."""
