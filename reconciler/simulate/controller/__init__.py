"""The real loop on an imagined cluster."""

from reconciler.simulate.controller.controller import Controller, Setting

__all__ = ["Controller", "Setting"]
