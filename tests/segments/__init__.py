"""Segments: what a broker's disk holds, read, judged and saved."""
