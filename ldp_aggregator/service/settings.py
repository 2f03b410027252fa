"""An operator's settings, and where they are from: flags over environment over a TOML file over these defaults.

Environment variables are ``LDP_AGGREGATOR_`` and the name in capitals (``LDP_AGGREGATOR_BODY_BYTES``). The secret may
stand in a file that ``LDP_AGGREGATOR_DATABASE_FILE`` names. Unknown keys are refused wherever they stand.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from ldp_protocols.document.directory import read_key
from ldp_protocols.errors import LdpError

PREFIX: Final = "LDP_AGGREGATOR_"
DATABASE: Final = PREFIX + "DATABASE"
DATABASE_FILE: Final = DATABASE + "_FILE"
CONFIG_VARIABLE: Final = PREFIX + "CONFIG"
"""Names the TOML file where the flag ``--config`` does not."""

KIBI: Final = 1 << 10
MEBI: Final = 1 << 20

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@,*A-Z]+")
"""As browsers write them: scheme, host and any unusual port, in small letters."""


def setting_error(problem: str) -> LdpError:
    """A setting that is unknown or has no meaning; the message names it and where it stands."""
    return LdpError("bad-setting", problem)


SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "certificate": ("tls_certificate", "tls_key"),
    "gateway keys": ("gateway_key",),
    "database address": ("database",),
}
"""Kinds of secrets, by the settings that they stand in or that name their files. A running server reads on SIGHUP again
what is in files."""


@dataclass(frozen=True)
class Limits:
    """The most of anything that the server takes on. An operator sets those that :class:`Settings` has, too."""

    body_bytes: int = 4 * MEBI
    connections: int = 1000
    queue_bytes: int = 64 * MEBI  # Held of clients: bodies, uploads that wait, answers not read.
    reports_per_upload: int = 100_000  # Of a relay: a tenth of a second of work, for which others wait.
    group_reports: int = 200_000  # In one commit, one upload at least: larger ones are no faster.
    header_bytes: int = 8 * KIBI  # The longest header line, as in nginx and aiohttp.
    header_seconds: float = 10.0  # For a request's headers to arrive: a telephone needs a second or two.
    body_seconds: float = 30.0  # For a body to arrive: the longest one at 1 Mbit/s.
    answer_seconds: float = 60.0  # For a client to read an answer.
    idle_seconds: float = 60.0  # Longer than most proxies keep an idle connection.
    drain_seconds: float = 20.0  # For open requests to end when stopping: below Kubernetes' 30 s.


class Settings(BaseSettings):
    """All settings; :func:`read_settings` is how to get them."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, env_prefix=PREFIX, hide_input_in_errors=True)

    data: Path = Field(default=Path("ldp-data"), description="folder of the embedded store")
    database: SecretStr | None = Field(
        default=None, description="postgresql:// address of the shared store; unset: the embedded store"
    )
    listen: str = Field(default="0.0.0.0:8080", description="[HOST:]PORT of the public listener; port 0 is a free one")
    listen_admin: str = Field(default="127.0.0.1:8081", description="[HOST:]PORT of the admin listener")
    listen_operations: str = Field(
        default="127.0.0.1:8082", description="[HOST:]PORT of the listener for health and metrics"
    )
    admin_behind_tls: bool = Field(
        default=False, description="the admin listener is reached through a proxy that speaks TLS: cookies are Secure"
    )
    operations_names: tuple[str, ...] = Field(
        default=(),
        description="names of the host to which the operations listener answers, beside its address and localhost",
    )
    tls_certificate: Path | None = Field(
        default=None, description="certificate chain (PEM) of the public listener; unset: no TLS"
    )
    tls_key: Path | None = Field(default=None, description="its private key (PEM); both are read again on SIGHUP")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level of the log"
    )
    archive: str | None = Field(
        default=None, description="folder or address (s3://...) for accepted reports as Parquet; unset: no archive"
    )
    uploads_need_token: bool = Field(
        default=False, description="for every campaign, accept uploads only with a token of scope relay"
    )
    allowed_origins: tuple[str, ...] = Field(
        default=(), description='origins (https://app.example.org) of pages that may upload; ["*"] allows every page'
    )
    keep_closed_days: int | None = Field(
        default=None, ge=1, description="delete campaigns so many days after their closing; unset: never"
    )
    admission: str | None = Field(
        default=None,
        pattern=r"^[\w.]+:\w+$",
        description="module:function that checks uploads without a token; unset: no check",
    )
    gateway_key: Path | None = Field(
        default=None,
        description="file of the keys to which devices seal uploads (key create --gateway); unset: no gateway",
    )
    gateway_elsewhere: bool = Field(
        default=False, description="another server has the gateways' keys: do not report missing ones"
    )
    publishers: tuple[str, ...] = Field(
        default=(), description="public keys of publishers whose directories must name every open campaign"
    )
    try_page: bool = Field(default=False, description="offer the page that explains local privacy, at /try")
    body_bytes: int = Field(default=Limits.body_bytes, ge=KIBI, le=256 * MEBI, description="longest upload or draft")
    connections: int = Field(
        default=Limits.connections, ge=1, description="most open connections of one listener and process"
    )
    uploads_per_second: float | None = Field(
        default=None, gt=0, description="most uploads of one campaign without a token, in each process; unset: no limit"
    )
    pause_seconds: float = Field(
        default=0.0, ge=0, description="time after SIGTERM in which the server goes on, but is not ready"
    )

    @property
    def limits(self) -> Limits:
        return Limits(self.body_bytes, self.connections)

    @model_validator(mode="after")
    def _check_tls(self) -> Settings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together; set both or neither")
        return self

    @field_validator("listen", "listen_admin", "listen_operations")
    @classmethod
    def _check_listener(cls, text: str, info: ValidationInfo) -> str:
        host, separator, port = text.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) <= 65535) or (separator and not host):
            raise ValueError("a listener is like 127.0.0.1:8080, [::1]:8080 or 8080; port 0 takes a free one")
        default: str = cls.model_fields[str(info.field_name)].default
        return text if separator else f"{default.rpartition(':')[0]}:{port}"

    @field_validator("allowed_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError('an origin is like https://app.example.org, without a path, or "*"')
        return origins

    @field_validator("publishers")
    @classmethod
    def _check_publishers(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            read_key(key)
        return keys

    @property
    def database_address(self) -> str | None:
        """The address with its password; never log it."""
        return None if self.database is None else self.database.get_secret_value()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, _Environment(settings_cls), TomlConfigSettingsSource(settings_cls)


def read_settings(config: Path | None = None, flags: Mapping[str, Any] | None = None) -> Settings:
    """Settings from all sources. ``flags`` that are None were not given. Raises LdpError."""
    names = variables()
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in names)
    if unknown:
        near = did_you_mean(unknown[0].upper(), names)
        raise setting_error(
            f"environment variable {unknown[0]} is unknown{near}; the known ones are {', '.join(names)}"
        )
    if config is None and os.environ.get(CONFIG_VARIABLE):
        config = Path(os.environ[CONFIG_VARIABLE])
    if config is not None and not config.is_file():
        raise setting_error(f"the configuration file {config} cannot be read: there is no such file")
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    source = type("Settings", (Settings,), {"model_config": SettingsConfigDict(toml_file=config)})
    try:
        settings: Settings = source(**given)
    except ValidationError as error:
        raise setting_error(_explain(error)) from None
    except OSError as error:
        raise setting_error(f"the configuration file {config} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise setting_error(f"the configuration file {config} is not TOML in UTF-8: {error}") from None
    return settings


def variables() -> dict[str, str]:
    """Every environment variable that is read, with what it sets."""
    names = {PREFIX + name.upper(): field.description or "" for name, field in Settings.model_fields.items()}
    secret = {DATABASE_FILE: "a file that holds database and nothing else"}
    return {CONFIG_VARIABLE: "the TOML file to read"} | names | secret


def secrets_in_files(settings: Settings) -> list[str]:
    """Name the kinds of :data:`SECRETS` that stand in files here."""
    kinds = [kind for kind, names in SECRETS.items() if all(getattr(settings, name) is not None for name in names)]
    return [kind for kind in kinds if kind != "database address" or DATABASE_FILE in os.environ]


def database_in_file() -> str:
    """The database's address as the file that the environment names has it now. Raises LdpError."""
    return _read_secret(Path(os.environ[DATABASE_FILE]))


def host_and_port(listener: str) -> tuple[str, int]:
    """Take the address of a listener apart; that of IPv6 loses its brackets."""
    host, _, port = listener.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


class _Environment(EnvSettingsSource):
    """The environment, and the secret that it names a file of."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        found = dict(super()._load_env_vars())
        path = found.pop(DATABASE_FILE.lower(), None)
        if path is not None:
            if DATABASE.lower() in found:
                raise setting_error(f"{DATABASE} is set, and {DATABASE_FILE}, too; set one of them")
            found[DATABASE.lower()] = _read_secret(Path(path))
        return found


def _read_secret(path: Path) -> str:
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise setting_error(f"the file that {DATABASE_FILE} names cannot be read: {error.strerror}") from None
    except ValueError:
        raise setting_error(f"the file that {DATABASE_FILE} names is not UTF-8") from None
    if not secret:
        raise setting_error(f"the file that {DATABASE_FILE} names is empty")
    return secret


_MOVED: Final = {
    "federation_groups": 'is in the draft of each campaign now, as "federation": {"groups": N}; leave it out'
}

_WORDS: Final = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text",
    "path_type": "must be the name of a file or folder",
    "tuple_type": "must be a list",
    "string_pattern_mismatch": "must be like package.module:function",
}
"""Sentences for a wrong value, by the type that pydantic gives it; other types are this module's own sentences."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Name the known one that is most like an unknown one, where one is."""
    near = get_close_matches(name, list(candidates), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _plain(bound: object) -> object:
    return f"{bound:g}" if isinstance(bound, float) else bound


def _explain(error: ValidationError) -> str:
    """Everything that is wrong, without the values: they may be secrets."""
    problems = []
    for one in error.errors(include_input=False, include_url=False):
        place, kind = ".".join(map(str, one["loc"])), one["type"]
        if kind == "extra_forbidden":
            problem = _MOVED.get(place) or "unknown key" + did_you_mean(place, Settings.model_fields)
        elif kind in _WORDS:
            problem = _WORDS[kind].format(**{name: _plain(bound) for name, bound in one.get("ctx", {}).items()})
        else:
            problem = one["msg"].removeprefix("Value error, ")
        problems.append(f"setting {place}: {problem}" if place else problem)
    return "; ".join(problems)
