"""One cycle: load, observe, plan, check, remember, apply, publish. Access to the cluster is injected."""
