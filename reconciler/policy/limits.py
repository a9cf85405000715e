"""How much of a bundle is looked at: a file of a megabyte can have a hundred thousand problems, which nobody reads."""

MOST_PROBLEMS = 1_000  # then no further one is looked for
MOST_MERGED = 20_000  # objects of all environments together that are merged and checked at once
LONGEST_EXCERPT = 1_000  # characters of a source line that is shown
LONGEST_SENTENCE = 500
LONGEST_WORD = 64  # that a known word is suggested for
