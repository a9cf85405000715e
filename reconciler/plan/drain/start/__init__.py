"""Which candidates begin to be emptied, when their time has come."""
