"""What happened to groups, as events."""
