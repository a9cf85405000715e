"""Sources of policies: folders, and revisions of Git repositories; both produce a Bundle."""
