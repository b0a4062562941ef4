"""Fuzz targets, one a file; each opens with the invariant that it checks."""
