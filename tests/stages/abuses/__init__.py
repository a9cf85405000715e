"""What somebody tries who holds the token of the shipped account, and what stops each attempt."""
