"""What came of it: figures, kept while it runs, in as much memory as was asked for at its beginning."""
