"""`nki.builtin`: empty; nki-library's simulation mode imports the module and uses nothing of it."""
