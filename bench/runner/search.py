"""The highest rate that can be kept up."""

import math

RATE_MIN, RATE_MAX = 100, 1_000_000
PRECISION = 1.1


def highest_rate(keeps_up, first):
    """To within a tenth: doubles or halves from `first` on until the answer changes, then halves the gap."""
    low, high = bracket(keeps_up, first)
    while high > low * PRECISION:
        middle = math.isqrt(low * high)
        if keeps_up(middle):
            low = middle
        else:
            high = middle
    return low


def bracket(keeps_up, first):
    """A rate that is kept up, and one, twice as high, that is not."""
    rate = first
    if keeps_up(rate):
        while rate < RATE_MAX and keeps_up(rate * 2):
            rate *= 2
        return rate, rate * 2
    while rate >= RATE_MIN:
        rate //= 2
        if keeps_up(rate):
            return rate, rate * 2
    raise ValueError(f"not even {rate} a second are kept up")
