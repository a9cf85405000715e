"""The books of a what-if: what there is, what is taken of it and by whom, and how it is taken back."""
