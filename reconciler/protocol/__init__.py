"""Conversations without sockets, pure: who leads."""
