"""Values to words: the only place that makes text for people out of results."""
