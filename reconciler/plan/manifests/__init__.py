"""The first planner: creates and updates rendered objects, adopts existing ones on request, and prunes with consent."""
