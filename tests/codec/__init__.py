"""The field tables and their interpreter."""
