"""Texts of `explain`: facts about one subject, its planned changes, and their reasons."""
