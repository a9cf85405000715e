"""What keeps decisions from being carried out: blocked or waiting, at rest, or because no planner goes on."""
