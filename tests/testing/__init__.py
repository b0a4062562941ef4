"""The strategies that this package gives to its users."""
