"""Status of each policy as data; reconciler/report/conditions formats it."""
