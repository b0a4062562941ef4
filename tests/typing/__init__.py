"""What type checkers must see: these files are checked by `mypy --strict`, and run too."""
