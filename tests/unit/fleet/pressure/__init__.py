"""Tests of boards, the choice of pressure, fragmentation and the ledger of lent GPUs."""
