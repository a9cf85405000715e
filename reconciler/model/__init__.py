"""The nouns: frozen values that every other part shares."""
