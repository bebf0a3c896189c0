"""Waits for conditions."""

import time

# The time within which a condition must become true, unless a test sets another one.
SECONDS = 60


def until(what, condition, seconds=SECONDS, explain=lambda: ""):
    """Polls a condition, and fails if it is not true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what} {explain()}")
        time.sleep(0.1)
