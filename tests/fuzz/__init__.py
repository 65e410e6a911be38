"""The standing harness: hostile inputs for every reader, and what may never come of one."""
