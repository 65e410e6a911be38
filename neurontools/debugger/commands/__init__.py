"""The debugger's language: each command declared once, for prompt, scripts, JSON, screen and help."""
