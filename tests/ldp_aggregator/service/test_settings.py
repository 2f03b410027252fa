"""Settings: where they come from, which wins, and that nothing unknown is taken."""

import os
import re
from dataclasses import replace

import pytest

from ldp_aggregator.service.settings import (
    SECRETS,
    Limits,
    Settings,
    database_in_file,
    host_and_port,
    read_settings,
    secrets_in_files,
    variables,
)
from ldp_protocols import LdpError


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith("LDP_AGGREGATOR_")]:
        monkeypatch.delenv(name)


def test_flags_win_over_environment_over_file_over_defaults(tmp_path, monkeypatch):
    config = tmp_path / "settings.toml"
    config.write_text('listen = "10.0.0.1:1"\nlisten_admin = "1"\nbody_bytes = 5000\nconnections = 3\n')
    monkeypatch.setenv("LDP_AGGREGATOR_LISTEN_ADMIN", "2")
    monkeypatch.setenv("LDP_AGGREGATOR_CONNECTIONS", "4")
    settings = read_settings(config, {"listen": "3", "listen_operations": None})
    assert (settings.listen, settings.listen_admin) == ("0.0.0.0:3", "127.0.0.1:2")
    assert settings.listen_operations == "127.0.0.1:8082"
    assert settings.limits == replace(Limits(), body_bytes=5000, connections=4)
    monkeypatch.setenv("LDP_AGGREGATOR_CONFIG", str(config))
    assert read_settings().listen == "10.0.0.1:1", "the environment can name the file"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("8080", "0.0.0.0", 8080), ("[::1]:0", "::1", 0), ("localhost:65535", "localhost", 65535)],
)
def test_a_listener_is_a_port_or_a_host_and_a_port(text, host, port):
    assert host_and_port(read_settings(flags={"listen": text}).listen) == (host, port)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "setting prot: unknown key"),
        ('lisen = "1"', r"^setting lisen: unknown key; did you mean listen\?$"),
        (
            'connections = 1.5\narchve = "x"',
            "setting connections: must be a whole number; setting archve: unknown key; did",
        ),
        (
            'pause_seconds = "x"\nlog_level = "loud"',
            "log_level: must be one of .*; setting pause_seconds: must be a number",
        ),
        ("keep_closed_days = 0", "keep_closed_days: must be at least 1$"),
        ("uploads_per_second = 0", "uploads_per_second: must be above 0$"),
        ("uploads_need_token = 7\ntls_key = 1", "tls_key: must be the name of a file.*: must be true or false"),
        ('admission = "x"\npublishers = 1\narchive = 1', "archive: must be a text.*package.module.*must be a list"),
        ("port = 8080", "setting port: unknown key"),
        ("federation_groups = 3", 'setting federation_groups: is in the draft of each campaign now, as "federation"'),
        ("[limits]\nconnections = 1", "setting limits: unknown key"),
        ('listen = "127.0.0.1:70000"', "setting listen: a listener is like 127.0.0.1:8080"),
        ('listen = "many"', "setting listen: "),
        ('listen = ":80"', "setting listen: "),
        ("port = ", "is not TOML"),
        ("connections = 0", "setting connections: "),
        ('publishers = ["mine"]', "setting publishers: .*32 bytes in base64url"),
    ],
)
def test_a_file_with_something_wrong_is_refused_by_name(tmp_path, text, message):
    config = tmp_path / "settings.toml"
    config.write_text(text)
    with pytest.raises(LdpError, match=message):
        read_settings(config)
    with pytest.raises(LdpError, match=r"none\.toml cannot be read"):
        read_settings(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "name",
    [
        "LDP_AGGREGATOR_PROT",
        "LDP_AGGREGATOR_LIMITS__CONNECTIONS",
        "LDP_AGGREGATOR_SERVICE_HOST",  # Kubernetes sets it beside a Service, unless enableServiceLinks is false.
    ],
)
def test_an_unknown_variable_is_refused_by_name_and_every_other_is_explained(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with pytest.raises(LdpError, match=f"{name} is unknown"):
        read_settings()
    monkeypatch.delenv(name)
    monkeypatch.setenv("LDP_AGGREGATOR_LISEN", "1")
    with pytest.raises(LdpError, match=r"unknown; did you mean LDP_AGGREGATOR_LISTEN\?"):
        read_settings()
    assert "LDP_AGGREGATOR_CONNECTIONS" in variables()
    assert all(variables().values()), "every variable says what it sets"


def test_a_secret_may_stand_in_a_file_of_its_own_which_wins_over_the_configuration_file(monkeypatch, tmp_path):
    assert "LDP_AGGREGATOR_DATABASE_FILE" in variables()
    (tmp_path / "database").write_text("postgresql://ldp:geheim@database/ldp\n")
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE_FILE", str(tmp_path / "database"))
    settings = read_settings()
    assert settings.database_address == "postgresql://ldp:geheim@database/ldp"
    assert "geheim" not in repr(settings)
    (tmp_path / "settings.toml").write_text('database = "postgresql://old"\n')
    assert read_settings(tmp_path / "settings.toml").database_address == settings.database_address


def test_every_setting_that_is_a_secret_or_names_a_file_is_of_a_kind_that_is_read_again(monkeypatch, tmp_path):
    named = {name for name, one in Settings.model_fields.items() if re.search("Path|Secret", str(one.annotation))}
    assert named - {"data"} == {name for names in SECRETS.values() for name in names}
    assert secrets_in_files(read_settings()) == []
    flags = dict.fromkeys(("tls_certificate", "tls_key", "gateway_key"), "x") | {"database": "postgresql://there"}
    assert secrets_in_files(read_settings(flags=flags)) == ["certificate", "gateway keys"]
    (tmp_path / "database").write_text("postgresql://there\n")
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE_FILE", str(tmp_path / "database"))
    assert secrets_in_files(read_settings(flags=flags)) == ["certificate", "gateway keys", "database address"]
    (tmp_path / "database").write_text("postgresql://here")
    assert database_in_file() == "postgresql://here"


def test_a_secret_in_two_places_or_in_a_file_that_cannot_be_read_is_refused(monkeypatch, tmp_path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "good").write_text("postgresql://ldp:geheim@database/ldp")
    for name, message in (("none", "cannot be read"), ("empty", "is empty"), ("bytes", "is not UTF-8")):
        monkeypatch.setenv("LDP_AGGREGATOR_DATABASE_FILE", str(tmp_path / name))
        with pytest.raises(LdpError, match=f"LDP_AGGREGATOR_DATABASE_FILE names {message}"):
            read_settings()
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE_FILE", str(tmp_path / "good"))
    monkeypatch.setenv("LDP_AGGREGATOR_DATABASE", "postgresql://x")
    with pytest.raises(LdpError, match="set one of them") as caught:
        read_settings()
    assert "geheim" not in str(caught.value)
