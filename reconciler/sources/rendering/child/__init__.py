"""The renderer process: reads texts and values from stdin, answers on stdout, and can reach nothing else."""
