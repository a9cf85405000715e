"""What a cluster owes the loop: one suite, on an imagined cluster and on a real one."""
