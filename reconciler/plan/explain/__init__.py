"""What stands behind a plan, for who asks about one subject: typed answers, of which reconciler/report/explain makes
sentences."""
