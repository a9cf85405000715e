"""Where pods are relative to one another: whom a term means, and how many of them each domain has."""
