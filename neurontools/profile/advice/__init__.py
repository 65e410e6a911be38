"""Advice that is computed: each rule names a flaw and a schedule without it; what that schedule saves is the advice.

A candidate is a change of costs or waits. The schedule is run again with it, and the time it takes less is what the
advice says; what saves next to nothing is not said. Rules look at every line, and only the worst of each are tried.
"""

from __future__ import annotations

from neurontools.profile.advice.advise import RULES, advise
from neurontools.profile.advice.context import Candidate, Context

__all__ = ["RULES", "Candidate", "Context", "advise"]
