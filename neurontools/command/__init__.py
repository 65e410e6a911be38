"""What every command shares: options, one report, exit statuses, the funnel of errors, lazy loading."""
