"""Where policies come from: folders, and revisions of Git repositories; both end as a Bundle."""
