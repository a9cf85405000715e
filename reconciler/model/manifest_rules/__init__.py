"""What manifests may hold, whoever wrote them: asked of what templates yield, of plans, and before a write is sent."""
