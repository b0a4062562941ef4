"""What every message looks like, in every version: the only place where a layout is written by hand.

`python -m schemas` walks these declarations and writes `coordwire/messages/`. Each declaration is also a
working `construct` schema, which the tests hold against everything that was generated from it.
"""
