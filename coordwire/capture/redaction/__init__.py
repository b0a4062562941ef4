"""Secrets in frames: which they are, and their removal from output.

secret_fields.py  which fields hold secrets, and their removal from the JSON form
open_configs.py   the configs that are none
entry_secrets.py  what to leave out of an entry
"""
