"""From declarations to `coordwire/messages/`.

walk.py  declarations -> rows (what is where, in which versions)
text.py  lines of Python, finally formatted
emit.py  rows -> whole modules, and the index of all messages
"""
