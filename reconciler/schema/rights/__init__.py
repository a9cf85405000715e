"""The least rights that the policies need: to look, and apart from that to write."""
