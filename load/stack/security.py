"""Listeners as enterprises have them, beside the plain ones of a stack: TLS, client certificates, SCRAM, tokens.

Kafka: `kafka_tls` (SASL_SSL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER with unsecured tokens; a session lasts
`SESSION_MS`) and `kafka_mtls` (SSL with a client certificate, whose CN is the user).
RabbitMQ: `amqps` (PLAIN, EXTERNAL by the certificate's CN, OAuth2 tokens signed with `authority.TOKEN_KEY`).
"""

import base64
from pathlib import Path

from load.stack.authority import TOKEN_KEY, Authority

PORTS = ("kafka_tls", "kafka_mtls", "amqps")
"""A stack that is given them has the listeners."""
SESSION_MS = 3_000
PLUGINS = ("rabbitmq_auth_backend_oauth2", "rabbitmq_auth_mechanism_ssl")

_LOGIN = "org.apache.kafka.common.security"

RABBITMQ_SETTINGS = """\
listeners.ssl.default = 127.0.0.1:{amqps}
ssl_options.cacertfile = {folder}/ca.pem
ssl_options.certfile = {folder}/server.pem
ssl_options.keyfile = {folder}/server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = EXTERNAL
auth_backends.1 = internal
auth_backends.2 = rabbit_auth_backend_oauth2
"""
RABBITMQ_KEYS = """\
[{{rabbitmq_auth_backend_oauth2, [{{resource_server_id, <<"rabbitmq">>}}, {{key_config, [
  {{default_key, <<"known">>}},
  {{signing_keys, #{{<<"known">> => {{map, #{{
    <<"kty">> => <<"oct">>, <<"alg">> => <<"HS256">>, <<"kid">> => <<"known">>, <<"k">> => <<"{key}">>}}}}}}}}]}}]}}].
"""


def certificates(folder: Path) -> Authority:
    """Return the authority of a stack, its servers' certificate made the first time."""
    authority = Authority(folder)
    keystore = folder / "server.keystore.pem"
    if not keystore.exists():
        certificate, key = authority.issue("localhost", folder / "server")
        keystore.write_text(key.read_text() + certificate.read_text())
    return authority


def kafka_settings(ports: dict[str, int], folder: Path, users: dict[str, str], listen_on: str) -> dict[str, str]:
    """Return what is to be added to a server's properties; `listeners` and the like are continued."""
    tls, mtls = ports["kafka_tls"], ports["kafka_mtls"]
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    prefix = "listener.name.tls"
    return {
        "listeners": f",TLS://{listen_on}:{tls},MTLS://{listen_on}:{mtls}",
        "advertised.listeners": f",TLS://127.0.0.1:{tls},MTLS://127.0.0.1:{mtls}",
        "listener.security.protocol.map": ",TLS:SASL_SSL,MTLS:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.keystore.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/",
        f"{prefix}.connections.max.reauth.ms": str(SESSION_MS),
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{prefix}.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {known};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
    }


def rabbitmq_keys() -> str:
    """Return the advanced configuration: by which key tokens are judged."""
    return RABBITMQ_KEYS.format(key=base64.urlsafe_b64encode(TOKEN_KEY).decode().rstrip("="))
