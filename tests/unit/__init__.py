"""Tests of one module each, without the lab, in folders that mirror the package."""
