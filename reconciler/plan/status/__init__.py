"""How each policy stands, told where people and tools look for it: on the object, or in a ConfigMap of ours."""
