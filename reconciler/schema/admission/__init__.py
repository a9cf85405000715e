"""The admission policy that limits the controller's account to what its rights are for, written from the rights."""
