"""What is kept of plans: their inputs, a plan to be carried out later, and both together for whoever explains."""
