"""How the cluster is seen: kinds found, listed, watched, and kept as one Observed."""
