"""Files about plans: dumps of inputs, saved plans, and planning results for explanations."""
