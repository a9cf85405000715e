"""Answers to "why?", in words: what is known of one subject, what would happen to it, and what stands behind that."""
