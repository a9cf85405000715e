"""The scenario format and its parser."""
