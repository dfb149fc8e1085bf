from __future__ import annotations

import errno
import fcntl
import os

import pytest

from webhooks_core.worker.cluster.locks import ProcessLock


def is_free(lock: ProcessLock) -> bool:
    """Ask from another process whether a lock can be had."""
    if not (child := os.fork()):
        try:
            fcntl.lockf(lock._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_the_lock_is_free_again_after_as_many_releases_as_takings():
    lock = ProcessLock()
    with lock:
        with lock:
            assert not is_free(lock)
        assert not is_free(lock)
    assert is_free(lock)


def test_a_fork_inherits_nothing_of_a_lock():
    lock = ProcessLock()
    if not (child := os.fork()):
        lock.acquire()
        os._exit(0)  # as when it is killed
    os.waitpid(child, 0)
    assert is_free(lock)
    with lock:
        assert not is_free(lock)


def test_a_deadlock_that_only_the_kernel_sees_is_waited_out(monkeypatch):
    real, refusals = fcntl.lockf, [errno.EDEADLK, errno.EDEADLK]

    def refuse(file, how):
        if refusals:
            raise OSError(refusals.pop(), "refused")
        return real(file, how)

    monkeypatch.setattr(fcntl, "lockf", refuse)
    lock = ProcessLock()
    assert lock.acquire()
    monkeypatch.undo()
    assert not is_free(lock)


def test_any_other_refusal_is_raised(monkeypatch):
    def refuse(_file, _how):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(OSError, match="no locks available"):
        ProcessLock().acquire()
