"""Formats of a report: functions from a document to text."""
