"""The tests; they mirror coordwire/."""
