"""Impact of a plan: nodes that our planners remove now or later, as consequences with GPUs, evictions and cost."""
