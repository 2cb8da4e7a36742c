"""The lease: until when a worker may believe that its jobs are its own.

Counted from the instant before the last accepted heartbeat was sent: a slow answer must not lengthen the trust. Only
the monotonic clock is read; the wall clock may be wrong by an hour.
"""

from __future__ import annotations

MARGIN_S_MIN = 1.0


class Lease:
    """The proof that a session holds its attempts."""

    def __init__(self) -> None:
        self.lease_s = 0.0
        self.proven_at: float | None = None

    def renew(self, sent_at: float, lease_s: float) -> None:
        """A heartbeat that was sent at this instant was accepted."""
        self.lease_s = lease_s
        self.proven_at = sent_at if self.proven_at is None else max(self.proven_at, sent_at)

    def end(self) -> None:
        """There is no session any more."""
        self.proven_at = None

    @property
    def provable_until(self) -> float | None:
        """The instant from which nothing is certain. None: there is no session."""
        if self.proven_at is None:
            return None
        return self.proven_at + self.lease_s - max(MARGIN_S_MIN, self.lease_s / 10)

    def is_provable(self, now: float) -> bool:
        """Whether the attempts are certainly still ours."""
        until = self.provable_until
        return until is not None and now < until

    def heard_within_lease(self, now: float) -> bool:
        """Whether a heartbeat was accepted during the last lease."""
        return self.proven_at is not None and now - self.proven_at < self.lease_s
