"""What runs on an imagined cluster: how pods come and go."""
