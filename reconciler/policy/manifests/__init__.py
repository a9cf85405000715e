"""From a pool to its manifests: the values that a template gets, and whether what it yields can be applied."""
