"""`Retry-After` in all its forms."""

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks_core.network.connection import retry_after

AT = 2_950_000_000  # in June 2063
DATE = formatdate(AT, usegmt=True)


@pytest.mark.parametrize(
    "value",
    [
        DATE,
        time.strftime("%A, %d-%b-%y %H:%M:%S GMT", time.gmtime(AT)),
        time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(AT)),
        time.strftime("%a, %d %b %Y %H:%M:%S", time.gmtime(AT)),
        formatdate(AT),
        time.strftime("%a, %d %b %Y %H:%M:%S +0200", time.gmtime(AT + 7200)),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_each_form_of_a_date_is_a_time_from_now(monkeypatch, value, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        monkeypatch.setattr(time, "time", lambda: AT - 90)
        assert retry_after(value) == (90, DATE)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_date_that_is_past_is_now():
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    assert retry_after(past) == (0, past)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("0", 0), ("0120", 120), ("1000000", 10**6), ("9" * 12, 10**12 - 1)),
        ("9" * 5000, float("inf")),
        *((value, 0) for value in ("", "-1", "1.5", "7; x", "\u0667", "1e9", "inf")),
        ("Wed, 99 Oct 2065 07:28:00 GMT", 0),
    ],
)
def test_seconds_may_have_any_number_of_digits(value, seconds):
    assert retry_after(value)[0] == seconds


DATES = (
    r"[SMTW][a-z]{2,5}, [0-9]{1,5}[ -][A-Z][a-z]{2}[ -][0-9]{1,9} [0-9A-Z:.+ -]{0,20}"
)


@given(st.text() | st.from_regex(DATES, fullmatch=True))
def test_any_text_is_a_pause(value):
    seconds, text = retry_after(value)
    assert seconds >= 0
    assert text.isascii()
    assert text.isprintable()
