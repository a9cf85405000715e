"""The rules of thumb of this project, as tests: each finding names the file, the line, the rule and a remedy."""
