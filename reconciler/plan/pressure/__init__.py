"""Pressure: elastic pods move away from nodes where more is reserved than the watermark allows."""
