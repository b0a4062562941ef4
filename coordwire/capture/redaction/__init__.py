"""Secrets in frames: which they are, and their removal from output.

secret_fields.py  which fields hold secrets, and which configs are none; their removal from
                  the JSON form
entry_secrets.py  what to leave out of an entry
"""
