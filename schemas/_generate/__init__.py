"""From declarations to `coordwire/messages/`.

walk.py      declarations -> rows (what is where, in which versions)
plan.py      rows -> one plan a version, and the runs of versions that share one
text.py      lines of Python, finally formatted
decoders.py  plan -> a decoder's text
encoders.py  plan -> an encoder's text
emit.py      rows and plans -> whole modules, and the index of all messages
"""
