"""`nki.compiler`: empty; nki-library imports the module. What AWS keeps there drives its own compiler."""
