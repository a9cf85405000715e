"""Pure protocol logic without I/O: leader election, write preconditions, patches, and write order."""
