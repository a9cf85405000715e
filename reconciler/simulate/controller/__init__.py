"""The real loop on an imagined cluster."""

from reconciler.simulate.controller.controller import ControllerSettings, SimulatedController

__all__ = ["ControllerSettings", "SimulatedController"]
