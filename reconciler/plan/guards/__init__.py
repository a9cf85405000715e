"""What ChangeGuards allow a plan to take away or disrupt, and what of it they hold back."""
