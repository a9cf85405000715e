"""The renderer: its child process, the protocol, and template texts."""
