"""How many places each owner may take, so that none waits for another. Pure."""

from __future__ import annotations

# The profile and the owner of an endpoint: two products may have the same owner.
Owner = tuple[str, str]


class Shares:
    """Places of one kind (slots, claims or bytes), and how many of them each owner holds.

    An owner alone may hold `most`, which is three quarters of all: it holds at most three times
    what it leaves free. While places are contended, that is while several owners want more, an
    owner may hold a quarter, and no more than it leaves free. So a newcomer never waits for
    another owner's time-outs.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = 4 * most // 3
        self._used = 0
        self._held: dict[Owner, int] = {}

    def copy(self) -> Shares:
        shares = Shares(self.most)
        shares._used, shares._held = self._used, self._held.copy()
        return shares

    def held(self, owner: Owner) -> int:
        return self._held.get(owner, 0)

    def add(self, owner: Owner, count: int) -> None:
        """Take places, or return them if `count` is negative."""
        self._used += count
        if held := self._held.get(owner, 0) + count:
            self._held[owner] = held
        else:
            self._held.pop(owner, None)

    def take(self, owner: Owner, count: int, *, is_contended: bool) -> bool:
        """Take places if the owner may take at least one more; return False if it may not."""
        if not self.room(owner, is_contended=is_contended):
            return False
        self.add(owner, count)
        return True

    def room(self, owner: Owner, *, is_contended: bool) -> int:
        """Return how many more places an owner may take.

        Rounded up, so that the last free place can be taken; never negative.
        """
        held, free = self.held(owner), self.total - self._used
        if is_contended:
            most = min(-(-self.total // 4) - held, -((held - free) // 2))
        else:
            most = -((held - 3 * free) // 4)
        return max(min(most, free), 0)
