"""Secrets in frames: which they are, and their removal from output.

secret_fields.py  which fields hold secrets
open_configs.py   the configs that are none
entry_secrets.py  what to leave out of an entry
removal.py        its removal from the JSON form
"""
