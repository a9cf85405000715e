"""Tests of boards, the choice of devices, fragmentation and the ledger of lent GPUs."""
