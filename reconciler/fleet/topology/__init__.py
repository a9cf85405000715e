"""Inter-pod terms and topology domains: which pods a term selects, and their number in each domain."""
