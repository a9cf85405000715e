"""How each policy stands, as data; reconciler/report/conditions publishes it in words."""
