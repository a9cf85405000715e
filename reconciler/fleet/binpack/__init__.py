"""Which nodes to buy for pods that have no place.

`pack.py` is the door; `offers.py` is what it takes and `packed.py` what it gives. It goes round by round (`pack.py`):

- `waiting.py` puts equal pods together, `market.py` and `looks.py` what is on offer, `standing.py` asks the fleet as it
  is which pods may be on which offers;
- `places/` settles which zone, or the like, each pod goes to that other pods tie to one;
- `nodes/` buys nodes and fills them;
- `outcome.py` and `result.py` say what came of it, `inputs.py` counts the work.
"""
