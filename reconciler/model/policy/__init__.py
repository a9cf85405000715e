"""The kinds: GpuPool, NodeProvisioner and other custom resources. Each struct is the only definition of its fields.

The kinds are in `model` because the policy reader produces them and the planners use them, and these two packages may
not import each other.
"""
