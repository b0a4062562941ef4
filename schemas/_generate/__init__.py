"""From declarations to `coordwire/messages/`.

walk.py     declarations -> rows (what is where, in which versions)
text.py     lines of Python, finally formatted
emit.py     rows -> the modules of messages
indexes.py  rows -> the index of all messages, and the facts that need none
"""
