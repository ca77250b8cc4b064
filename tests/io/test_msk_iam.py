"""Log-in to Amazon MSK by IAM, with a signer that is none of AWS's."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.config.feed_texts import HEAD, LAKE, loaded
from tidelake.errors import ConfigError, StorageError
from tidelake.io import msk_iam
from tidelake.io.kafka import Topics, check_settings

SERVERS = "b-1.shop.a1b2c3.c2.kafka.eu-west-1.amazonaws.com:9098,b-2.shop.a1b2c3.c2.kafka.eu-west-1.amazonaws.com:9098"
SERVERLESS = "boot-x1.c1.kafka-serverless.us-gov-west-1.amazonaws.com:9098"
WANTED = {"sasl.mechanism": "AWS_MSK_IAM"}


class Signer:
    """Counts tokens. expires_ms: of all of them."""

    expires_ms = 4_000_000_000_500

    def __init__(self) -> None:
        self.regions: list[str] = []

    def generate_auth_token(self, region: str) -> tuple[str, int]:
        self.regions.append(region)
        return f"token-{len(self.regions)}", self.expires_ms


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> Signer:
    made = Signer()
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", SimpleNamespace(MSKAuthTokenProvider=made))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    return made


def test_the_client_gets_a_callback_that_makes_a_token_whenever_it_is_called(signer: Signer) -> None:
    found = msk_iam.logged_in(WANTED | {"client.id": "etl"}, SERVERS, "source")
    token = found.pop("oauth_cb")
    assert found == {"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER", "client.id": "etl"}
    assert signer.regions == ["eu-west-1"]  # the first one, which shows that there are credentials
    assert [token(None), token(None)] == [("token-2", 4_000_000_000.5), ("token-3", 4_000_000_000.5)]
    plain = {"sasl.mechanisms": "PLAIN", "aws.region": "x"}
    assert msk_iam.logged_in(plain, SERVERS, "source") == plain


def test_the_client_takes_it_and_asks_for_a_token_by_itself(signer: Signer) -> None:
    settings: dict[str, Any] = WANTED | {"security.protocol": "SASL_PLAINTEXT", "aws.region": "eu-north-1"}
    with Topics("127.0.0.1:1", settings, "none"):
        pass
    assert signer.regions == ["eu-north-1"] * 2


@pytest.mark.parametrize(
    ("settings", "servers", "environment", "region"),
    [
        ({}, SERVERLESS, {}, "us-gov-west-1"),
        ({"aws.region": "ap-south-1"}, SERVERS, {"AWS_REGION": "x"}, "ap-south-1"),
        ({}, SERVERS, {"AWS_REGION": "x"}, "eu-west-1"),
        ({}, "kafka.shop.example:9098", {"AWS_REGION": "eu-south-1", "AWS_DEFAULT_REGION": "x"}, "eu-south-1"),
        ({}, "kafka.shop.example:9098", {"AWS_DEFAULT_REGION": "eu-south-2"}, "eu-south-2"),
    ],
)
def test_the_region_is_that_of_the_settings_the_brokers_or_the_environment(
    signer: Signer, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], servers: str, environment: dict[str, str], region: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    msk_iam.logged_in({"sasl.mechanisms": "AWS_MSK_IAM"} | settings, servers, "source")
    assert signer.regions == [region]


def test_what_is_missing_is_said_before_any_broker_is_asked(signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    said = r'^CONFIG: \[source.archiver.kafka\]: AWS_MSK_IAM needs the cluster\'s region; add "aws.region" = "…", or set AWS_REGION$'
    with pytest.raises(ConfigError, match=said):
        Topics("kafka.shop.example:9098", WANTED, "none", "source.archiver")
    monkeypatch.setattr(Signer, "expires_ms", property(lambda _: 1 / 0))
    said = r"^NO_CREDENTIALS: \[source.kafka\]: no token for AWS_MSK_IAM in eu-west-1: ZeroDivisionError: division by zero; give it"
    with pytest.raises(StorageError, match=said):
        Topics(SERVERS, WANTED, "none")
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    said = r"^CONFIG: \[source.kafka\]: AWS_MSK_IAM needs a library that is not installed; pip install 'tidelake\[msk\]'$"
    with pytest.raises(ConfigError, match=said):
        Topics(SERVERS, WANTED, "none")
    with pytest.raises(ConfigError, match=said):
        check_settings(WANTED)


def test_check_takes_what_librdkafka_does_not_know_only_with_the_mechanism(signer: Signer) -> None:
    check_settings(WANTED | {"aws.region": "eu-west-1"})
    with pytest.raises(ConfigError, match=r'No such configuration property: "aws.region"'):
        check_settings({"aws.region": "eu-west-1"})
    assert signer.regions == []


def test_a_feed_says_it_as_it_says_other_settings(tmp_path: Path) -> None:
    source = '[source]\nkind = "kafka"\nuri = "b1:9098"\n[source.kafka]\n"sasl.mechanism" = "AWS_MSK_IAM"\naws.region = "eu-west-1"\n'
    assert loaded(tmp_path, HEAD + source + LAKE).source.kafka == WANTED | {"aws.region": "eu-west-1"}
