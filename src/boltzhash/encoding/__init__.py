"""From texts to codes, here or on a cluster."""
