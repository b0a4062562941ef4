"""The layout of every message, in every version: the only place where layouts are written by hand.

`python -m schemas` walks these declarations and writes `coordwire/messages/`. Each declaration is also a
working `construct` schema, which the tests compare with everything that was generated from it.
"""
