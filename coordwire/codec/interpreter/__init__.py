"""The exact tier: walks values by the field tables, slowly, and words every refusal.

decoder.py  bytes -> value: strict or not, with spans; every DecodeError of a message comes from here
encoder.py  value -> bytes; every EncodeError of a message comes from here
"""
