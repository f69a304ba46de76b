"""The addresses of a local stack as lines for a shell, as docs/start.md uses them: KAFKA, AMQP and AMQP_HOST."""

import sys

from load.stack import Stack
from load.stack.errors import SetupError, StackError


def main() -> int:
    """Print them; return the exit code: 2 if there is no such stack."""
    try:
        stack = Stack.named(sys.argv[1])
    except (SetupError, StackError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"export KAFKA={stack.kafka} AMQP={stack.amqp} AMQP_HOST=127.0.0.1:{stack.amqp_port}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
