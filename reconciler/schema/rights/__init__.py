"""The minimal rights that the policies need: to observe, and to write."""
