"""What the `ntff` commands do with a profile capture: name its parts, measure it, compare it, export it."""
