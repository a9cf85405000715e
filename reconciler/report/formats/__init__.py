"""The formats of a report: each a function from a document to text."""
