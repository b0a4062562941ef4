"""Mutants of the extension's C: small errors, made by script, that tests have to find.

    python -m tests.c_mutants [--count N] [--seed N] [--only WORD]

places.py     where a source can be changed, and the source with all changes in it, each with a number
build.py      the extension of these sources, where one number at run time chooses the change that is made
runs.py       pytest's loop: which tests reach which change, then each change in a process of its own
equivalent.toml   changes that no test can see, each with its reason

Strategy: one build has all changes, so that a change costs no compilation, and a process that has loaded all
tests is forked for each, so that it costs no import. A change meets the tests that reach it, the quickest
first, until one fails. Rules: what nothing reaches counts as a survivor; a crash and a timeout count as found
and are told apart; a reason for a change that is found fails the run.
"""
