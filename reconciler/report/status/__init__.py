"""Report of `status`: an overview."""
