"""When what takes turns has been timed often enough: short runs scatter, and the best of a few says little.

At least so many turns and so long, then more while the best two times of anything differ, within limits.
"""

import time

ENOUGH = 1.0  # seconds, whatever the times say: short runs scatter most, and have as many turns as fit
# How often at most what takes longer, for how long at most, and what is no scatter.
MOST_TURNS, LONGEST, SPREAD = 40, 20.0, 0.02
_LIMIT = 10_000  # turns, should the clock stand


def scatters(seconds):
    """Return whether the best of some times may be far from what could be had: the next one is."""
    best, second = sorted(seconds)[:2]
    return second > best * (1 + SPREAD)


def turns(found, least, clock=time.process_time):
    """Yield once for each turn; whoever asks puts the times of each into `found`, lists by name.

    `clock` tells what has been spent: where other processes do the work, the processor time of this one does not.
    """
    begun = clock()
    for turn in range(_LIMIT):
        spent = clock() - begun
        is_enough = turn >= max(least, 2) and spent > ENOUGH
        if is_enough and (turn >= MOST_TURNS or spent > LONGEST or not any(map(scatters, found.values()))):
            return
        yield turn
