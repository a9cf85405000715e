"""What is decided in all golden cases and many drawn fleets, line by line: no change of wording or shape changes it."""
