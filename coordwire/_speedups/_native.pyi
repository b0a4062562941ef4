"""What the extension offers; see module.c."""
