"""Rules of safety, judged on what is really written: they know nothing of how plans are made."""
