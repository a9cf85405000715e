"""What the objects of one hostile tenant cost everybody."""
