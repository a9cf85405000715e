"""What a plan is made of: what goes in, what is decided and why, and what follows."""
