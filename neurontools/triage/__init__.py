"""Triage of many core dumps: group, find the first failure, cluster by signature, say what is most likely wrong."""
