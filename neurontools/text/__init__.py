"""Text for a terminal that all topics share: tables, numbers, progress, paging."""
