"""What is understood of many NEFFs: every file judged on its own, in several processes, and the sums."""
