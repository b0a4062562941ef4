"""The tests of coordwire; they mirror its tree."""
