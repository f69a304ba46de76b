"""A test that ends at its deadline, in the midst of a call to Java, does no harm to those behind it."""

import signal
import threading
from typing import Any

import pytest

from tests.conftest import forget_calls


class LateError(BaseException):
    """Stands for a deadline."""


def test_later_calls_have_their_own_answers_when_one_was_left_in_the_midst(spark: Any) -> None:
    java = spark.sparkContext._jvm.java.lang

    def end(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGUSR1, end)
    deadline = threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1))
    deadline.start()
    try:
        with pytest.raises(LateError) as left:
            java.Thread.sleep(1_000)
    finally:
        deadline.join()
        signal.signal(signal.SIGUSR1, before)
    assert left.tb, "keeps the connection, as pytest does"
    forget_calls()
    assert [java.Long.toString(number) for number in range(3)] == ["0", "1", "2"]
