"""The long forms of tests, run by `make soak`."""
