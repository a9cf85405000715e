"""Long comparisons with the real thing, run by `make oracle`."""
