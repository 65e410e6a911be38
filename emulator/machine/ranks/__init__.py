"""Several devices in one machine: ranks that run programs, meet in collectives, and share one order of events."""
