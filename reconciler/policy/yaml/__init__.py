"""YAML as policies may be written in it, and no more of it than two readers would understand alike."""
