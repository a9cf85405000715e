"""The kinds: what a policy, a claim and a node's report can say. Each struct is the only source of its fields.

They stand in `model` because the policies' text becomes them and the planners read them, and these two may not know one
another.
"""
