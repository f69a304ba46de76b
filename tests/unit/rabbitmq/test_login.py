"""Why a login failed, out of what the client raises."""

import ssl

from proxy.rabbitmq.login import _tls_failure


def test_the_look_for_a_certificate_ends_when_errors_are_each_other_s_cause() -> None:
    first, second = ConnectionError("reset"), OSError("closed")
    first.__context__, second.__context__ = second, first
    assert _tls_failure(first) is None


def test_a_certificate_is_named_when_its_error_is_the_cause_of_another() -> None:
    error = ConnectionError("lost")
    error.__cause__ = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.__cause__.verify_message = "self-signed certificate"
    assert _tls_failure(error) == "its certificate is not trusted: self-signed certificate"
