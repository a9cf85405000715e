"""The `reconciler` command without its start-up: copies of a process that has imported everything."""
