"""Pods that find no place: which provisioner serves them, and with what nodes."""
