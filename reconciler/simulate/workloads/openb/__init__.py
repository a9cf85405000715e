"""The public "openb" trace of a GPU cluster: its two lists, read and written."""
