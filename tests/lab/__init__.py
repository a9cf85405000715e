"""The lab: a real control plane on loopback, and the helpers that fill and disturb it."""
