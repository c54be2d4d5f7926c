"""What the hashers have in common."""
