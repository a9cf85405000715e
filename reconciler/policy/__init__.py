"""From text to one checked wish, pure."""
