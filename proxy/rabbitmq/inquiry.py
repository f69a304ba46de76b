"""One connection for questions about queues: opened when something is asked, to the best host there is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiormq import Channel
from aiormq.exceptions import AMQPChannelError, ConnectionInternalError

from proxy.errors import BrokerError, RefusedLoginError
from proxy.rabbitmq.host_turn import HostTurn
from proxy.rabbitmq.login import Login, Logins
from proxy.rabbitmq.questions import Questions
from proxy.rabbitmq.words import cause, silent, speaking


class Inquiry:
    """Asks by passive declares, within `answering`; after whatever goes wrong the next question connects anew.

    `hosts` are those that may be asked.
    """

    def __init__(self, logins: Logins, name: str, hosts: HostTurn) -> None:
        self._logins = logins
        self._name = name
        self._hosts = hosts
        self._login: Login | None = None
        self._asked = self._hosts.home
        self._questions: Questions | None = None

    @asynccontextmanager
    async def answering(self, seconds: float) -> AsyncIterator[None]:
        """Ask within so many seconds; whatever goes wrong ends the connection. Raises `BrokerError` alone."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            host = self._asked
            await self.end(gracefully=False)
            raise BrokerError(silent(host, seconds, is_known=self._logins.was_let_in)) from None
        except RefusedLoginError as error:
            raise BrokerError(str(error)) from error
        except BaseException:
            await self.end(gracefully=False)
            raise

    async def connected(self) -> Login:
        """Return a connection that lives. Raises `BrokerError`, `RefusedLoginError`."""
        now = asyncio.get_running_loop().time()
        login = self._login
        # A node that is cut off from the others goes on telling the depths that it knew; lanes notice.
        if login is None or login.underlay.is_closed or self._hosts.is_better_elsewhere(login.host, now):
            await self.end(gracefully=False)
            self._asked = self._hosts.next(now)
            login = self._login = await self._logins.log_in(self._asked, self._name)
        return login

    async def ask(self, queues: Sequence[str]) -> tuple[list[tuple[int, int]], str]:
        """Return messages and consumers of the queues before the first that is refused, and what is said of that one.

        Raises `BrokerError`, `RefusedLoginError`.
        """
        login = await self.connected()
        with speaking(login.host):
            questions = self._questions
            if questions is None or questions.is_over:
                questions = self._questions = Questions(login, await opened(login))
            told = await questions.ask(queues)
            if len(told) == len(queues):
                return told, ""
            self._questions, error = None, questions.why
            # RabbitMQ 4 fails at saying that it has no queue of a long name that is not ASCII, and ends the connection.
            has_failed = isinstance(error, ConnectionInternalError) and not queues[len(told)].isascii()
            if not has_failed and not isinstance(error, AMQPChannelError):
                raise BrokerError(f"{login.host}: the {self._name}'s connection was lost")
            return told, cause(error)

    async def end(self, *, gracefully: bool) -> None:
        """Close the connection."""
        login, self._login, self._questions = self._login, None, None
        if login is not None:
            await login.close(gracefully=gracefully)


def is_absent(said: str) -> bool:
    """Return whether the broker says of a queue that there is none."""
    return " no queue " in said


async def opened(login: Login) -> Channel:
    """Open a channel for questions."""
    channel = await login.underlay.channel(publisher_confirms=False, frame_buffer_size=0)
    assert isinstance(channel, Channel)
    return channel
