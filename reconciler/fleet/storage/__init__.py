"""Volumes as the scheduler sees them: which there are, what pods want of them, and where that can be had."""
