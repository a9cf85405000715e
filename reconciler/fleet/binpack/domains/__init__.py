"""Which place each pod goes to, of those that terms about other pods tie to zones and the like."""
