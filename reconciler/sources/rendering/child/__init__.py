"""The process that renders: it gets texts and values on stdin, answers on stdout, and can reach nothing else."""
