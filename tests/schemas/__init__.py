"""The declarations, their vocabulary, and the generator."""
