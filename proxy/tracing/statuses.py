"""What a collector answers: its status. The body says nothing that is used, and may have no end."""

from typing import Any

import requests

BODY_BYTES = 4_096
"""A body of at most so many bytes, by its own word, is read, so that its connection serves again."""


class Statuses(requests.Session):
    """Reads of an answer no more than that, and follows it nowhere: requests reads the whole body of either."""

    def send(self, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        """Return the answer, without its body. Raises `requests.RequestException`, for a redirect, too."""
        answer = super().send(request, **(how | {"stream": True}))
        if answer.is_redirect:
            answer.close()
            raise requests.TooManyRedirects("a collector is where it is said to be", response=answer)
        length = answer.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) <= BODY_BYTES:
            answer.content  # noqa: B018 -- reads it
            return answer
        answer.close()
        bare = requests.Response()
        bare.status_code, bare.reason, bare.headers = answer.status_code, answer.reason, answer.headers
        return bare

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return none: a collector is where it is said to be."""
