"""Assigns pods with inter-pod terms to topology domains, such as zones."""
