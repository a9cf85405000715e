"""Slow stories on the lab, run by `make test-long`; `make test` has the short ones of the same subject."""
