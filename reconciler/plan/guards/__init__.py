"""ChangeGuards: limits on what a plan may remove or disrupt, and the holds they impose."""
