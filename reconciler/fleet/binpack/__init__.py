"""Bin packing: which nodes to launch for pods that fit on no existing node.

`pack.py` is the entry point, `offers.py` its input, `result.py` its output. Packing proceeds in rounds (`pack.py`):

- `inputs.py` groups equal pods, queries the fleet for the allowed offers of each, and counts steps;
- `offers.py` lists the offers and groups equal ones into virtual nodes;
- `domains/` assigns pods with inter-pod terms to topology domains, such as zones;
- `nodes/` launches nodes and fills them;
- `result.py` builds the result.
"""
