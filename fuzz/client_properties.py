"""Whatever is in a client.properties: it gives settings or a `SettingsError`, and no error has six characters
of a secret in a row."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from coordwire.client import SettingsError, read_properties, settings_of
from fuzz._run import main

SECRET = "hunter2secret"
SHORT = 6

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_FILES = [
    f"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={_MODULE} required username="u" password="{SECRET}";
bootstrap.servers={SECRET}:9092
""",
    f"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config=a.ScramLoginModule required \\
 username=u password={SECRET} tokenauth=true;
""",
    f"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.token.endpoint.url=https://u:{SECRET}@127.0.0.1:1/x
sasl.jaas.config=a.OAuthBearerLoginModule required clientId="a" clientSecret="{SECRET}" scope="s";
""",
    f"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.jaas.config=a.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{SECRET}" \\
 unsecuredLoginLifetimeSeconds="60" unsecuredLoginPrincipalClaimName="sub";
""",
    f"""security.protocol=SSL
ssl.keystore.certificate.chain=-----BEGIN {SECRET}
ssl.keystore.key=-----BEGIN PRIVATE KEY----- {SECRET}
ssl.key.password={SECRET}
""",
    f"""security.protocol=SSL
ssl.truststore.location=/nothing/{SECRET}.p12
ssl.truststore.password={SECRET}
""",
    f"""config.providers=env,f,{SECRET}
config.providers.env.class=x.EnvVarConfigProvider
config.providers.f.class=x.FileConfigProvider
config.providers.{SECRET}.class=x.DirectoryConfigProvider
client.id=${{env:NOTHING}}
request.timeout.ms=${{f:/nothing/{SECRET}:k}}
x=${{{SECRET}:/nothing:{SECRET}}}
""",
]
_TOKENS = [
    '"', "'", "=", ";", " ", "\\", "\n", "${f:/etc/hostname:k}", "\\u00", "\0", "é", "required", "//", "/*",
    "*/", ",", ":", "[", "]", "9" * 21, "9" * 5000, "-1", "abc", "\\u0000", "{", "}", SECRET,
]  # fmt: skip


def _changed(draw: random.Random) -> str:
    text = draw.choice(_FILES) + draw.choice(("", "retries=3\n", f"retries={SECRET}\n"))
    for _ in range(draw.choice((0, 1, 1, 2, 4))):
        at = draw.randrange(len(text) + 1)
        match draw.randrange(5):
            case 0:
                text = text[:at] + draw.choice(_TOKENS) + text[at:]
            case 1:
                text = text[:at] + text[at + draw.choice((1, 3, 10)) :]
            case 2:
                text = text.replace(draw.choice(("=", '"', ";", " ", "required")), draw.choice(_TOKENS), 1)
            case 3:
                lines = text.split("\n")
                number = draw.randrange(len(lines))
                lines[number] = lines[number].split("=")[0] + "=" + draw.choice(_TOKENS)
                text = "\n".join(lines)
            case _:
                text = text[:at] + text[at : at + 1].swapcase() + text[at + 1 :]
    return text


def check(seed: int) -> None:
    draw = random.Random(seed)
    with tempfile.NamedTemporaryFile(suffix=".properties") as file:
        Path(file.name).write_text(_changed(draw), encoding="utf-8")
        try:
            settings_of(read_properties(file.name), bootstrap=draw.choice((None, "127.0.0.1:1")))
        except SettingsError as error:
            for at in range(len(SECRET) - SHORT + 1):
                assert SECRET[at : at + SHORT] not in str(error), seed


@given(st.integers(0, (1 << 40) - 1))
def fuzz(seed: int) -> None:
    check(seed)


if __name__ == "__main__":
    main(fuzz)
