"""What an API server does with what is written: who may, what is filled in, and whose it is then."""
