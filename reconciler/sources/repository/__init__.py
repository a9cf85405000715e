"""Access to Git repositories: bounded, and independent of anybody's git settings."""
