"""From texts to words and their weights."""
