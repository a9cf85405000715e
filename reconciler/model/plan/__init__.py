"""The data of a plan: inputs, decisions with their reasons, and consequences."""
