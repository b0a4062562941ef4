"""The rehearsal of an upgrade."""
