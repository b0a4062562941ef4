"""The command line, mostly in-process: what it prints, what it says on standard error, how it ends."""
