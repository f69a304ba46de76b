"""A local stack without containers: a real Kafka and a real RabbitMQ for tests, benchmarks and the demo.

On the command line `python -m load.stack`, in Python `Stack`.
"""

from load.stack.errors import SetupError, StackError
from load.stack.stack import Stack

__all__ = ["SetupError", "Stack", "StackError"]
