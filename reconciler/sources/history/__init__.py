"""The inputs of plans that acted, kept on a volume for some days, so that what was decided can be asked about later."""
