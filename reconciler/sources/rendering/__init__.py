"""What the renderer is made of: a process that renders, the conversation with it, and the texts that it is given."""
