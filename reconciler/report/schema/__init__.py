"""The shapes of JSON reports, and the files that are published of them."""
