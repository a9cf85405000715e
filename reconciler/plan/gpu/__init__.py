"""GPUs that are lent to pods: their life after the binding."""
