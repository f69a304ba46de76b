"""What can go wrong with the local stack; every message is for the person at the terminal."""


class StackError(Exception):
    """A node, or one of its tools, did not do what it was asked; the message ends with its last lines."""


class SetupError(StackError):
    """The machine lacks something that can't be put there from here; the message says what to install."""


class AlreadyUpError(StackError):
    """A stack of this name runs and answers; it is neither stale nor to be started twice."""
