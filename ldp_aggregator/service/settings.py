"""An operator's settings, and where they are from: flags over environment over a TOML file over these defaults.

Environment variables are ``LDP_AGGREGATOR_`` and the name in capitals, with two underscores before a limit's name
(``LDP_AGGREGATOR_LIMITS__BODY_BYTES``). A secret may stand in a file that a variable with ``_FILE`` behind its name
names (``LDP_AGGREGATOR_DATABASE_FILE``). Unknown keys are refused wherever they stand: a misspelt limit is no limit.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PREFIX: Final = "LDP_AGGREGATOR_"
NESTED: Final = "__"
FROM_FILE: Final = "_FILE"
CONFIG_VARIABLE: Final = PREFIX + "CONFIG"
"""Names the TOML file where the flag ``--config`` does not."""

KIBI: Final = 1 << 10
MEBI: Final = 1 << 20


_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@,*A-Z]+")
"""As browsers write them: scheme, host and any unusual port, in small letters."""


class SettingsError(ValueError):
    """A setting that is unknown or has no meaning; the message names it and where it stands."""


class Limits(BaseModel):
    """The most of anything that the server takes on. Memory is bounded by ``queue_bytes`` and ``connections``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    body_bytes: int = Field(default=4 * MEBI, ge=KIBI, le=256 * MEBI, description="longest upload or draft")
    reports_per_upload: int = Field(default=100_000, ge=1, description="reports in one upload")
    queue_bytes: int = Field(
        default=64 * MEBI, ge=KIBI, description="what is held of clients: bodies, uploads that wait, answers not read"
    )
    group_reports: int = Field(default=200_000, ge=1, description="reports in one commit, one upload at least")
    header_bytes: int = Field(default=8 * KIBI, ge=KIBI, le=64 * KIBI, description="longest header line")
    header_seconds: float = Field(default=10.0, gt=0, description="time for a request's headers to arrive")
    body_seconds: float = Field(default=30.0, gt=0, description="time for a body to arrive")
    answer_seconds: float = Field(default=60.0, gt=0, description="time for a client to read an answer")
    idle_seconds: float = Field(default=60.0, gt=0, description="how long an idle connection is kept open")
    drain_seconds: float = Field(default=20.0, gt=0, description="time for open requests to end when stopping")
    pause_seconds: float = Field(
        default=0.0, ge=0, description="how long it serves on after SIGTERM, and says that it is not ready"
    )
    uploads_per_second: float | None = Field(
        default=None, gt=0, description="uploads of one campaign without a token, in each process; unset: any number"
    )
    connections: int = Field(default=1000, ge=1, description="open connections of one listener and process")


class Settings(BaseSettings):
    """All settings; :func:`read_settings` is how to get them."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix=PREFIX, env_nested_delimiter=NESTED, hide_input_in_errors=True
    )

    data: Path = Field(default=Path("ldp-data"), description="folder of the embedded store")
    database: SecretStr | None = Field(default=None, description="postgresql:// address of the shared store")
    host: str = Field(default="0.0.0.0", description="address of the public listener")  # noqa: S104 - devices are elsewhere
    port: int = Field(default=8080, ge=0, le=65535, description="port of the public listener; 0 takes a free one")
    admin_host: str = Field(default="127.0.0.1", description="address of the admin listener")
    admin_port: int = Field(default=8081, ge=0, le=65535, description="port of the admin listener")
    admin_behind_tls: bool = Field(
        default=False, description="the admin listener is reached through a proxy that speaks TLS: cookies are Secure"
    )
    operations_host: str = Field(default="127.0.0.1", description="address of the listener for health and metrics")
    operations_port: int = Field(default=8082, ge=0, le=65535, description="port of that listener")
    operations_names: tuple[str, ...] = Field(
        default=(), description="names under which that listener is asked, beside addresses and localhost"
    )
    tls_certificate: Path | None = Field(default=None, description="certificate chain (PEM) of the public listener")
    tls_key: Path | None = Field(default=None, description="its private key (PEM); both are read again on SIGHUP")
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="least level logged")
    archive: str | None = Field(
        default=None, description="folder or address (s3://...) where accepted reports are kept as Parquet; unset: none"
    )
    archive_slots: Literal[1, 2, 4, 8, 16, 32, 64, 128, 256] = Field(
        default=16, description="files of one large commit in the archive, and parts that a recount can run on at once"
    )
    uploads_need_token: bool = Field(
        default=False, description="accept uploads only with a relay token, to whatever campaign"
    )
    allowed_origins: tuple[str, ...] = Field(
        default=(), description='origins (https://app.example.org) of the pages that may upload; ["*"] is every one'
    )
    keep_closed_days: int | None = Field(
        default=None, ge=1, description="delete campaigns so many days after they were closed; unset keeps them"
    )
    admission: str | None = Field(
        default=None,
        pattern=r"^[\w.]+:\w+$",
        description="module:function that is asked before an upload without a token",
    )
    federation_groups: int = Field(
        default=1, ge=1, le=1000, description="groups of nodes of whose models federated campaigns take the median"
    )
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _check_tls(self) -> Settings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together; set both or neither")
        return self

    @field_validator("allowed_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError('an origin is like https://app.example.org, without a path, or "*"')
        return origins

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
    """Settings from all sources. ``flags`` that are None were not given. Raises SettingsError."""
    _check_environment(os.environ)
    if config is None and os.environ.get(CONFIG_VARIABLE):
        config = Path(os.environ[CONFIG_VARIABLE])
    if config is not None:
        _check_file(config)
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    source = type("Settings", (Settings,), {"model_config": SettingsConfigDict(toml_file=config)})
    try:
        settings: Settings = source(**given)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None
    return settings


def variables() -> dict[str, str]:
    """Every environment variable that is read, with what it sets."""
    names = {PREFIX + name.upper(): field.description or "" for name, field in Settings.model_fields.items()}
    del names[PREFIX + "LIMITS"]
    for name in secret_settings():
        names[PREFIX + name.upper() + FROM_FILE] = f"a file that holds {name} and nothing else"
    for name, field in Limits.model_fields.items():
        names[f"{PREFIX}LIMITS{NESTED}{name.upper()}"] = field.description or ""
    return {CONFIG_VARIABLE: "the TOML file to read", **names}


def secret_settings() -> list[str]:
    """The settings that are secrets; each may stand in a file of its own."""
    return [name for name, field in Settings.model_fields.items() if SecretStr in get_args(field.annotation)]


class _Environment(EnvSettingsSource):
    """The environment, and the secrets that it names files of."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        found = dict(super()._load_env_vars())
        for name in secret_settings():
            variable = (PREFIX + name).lower()
            path = found.pop(variable + FROM_FILE.lower(), None)
            if path is not None:
                if variable in found:
                    raise SettingsError(f"{PREFIX}{name.upper()} is set, and its {FROM_FILE}, too; set one of them")
                found[variable] = _read_secret(Path(path), PREFIX + name.upper() + FROM_FILE)
        return found


def _read_secret(path: Path, variable: str) -> str:
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"the file that {variable} names cannot be read: {error.strerror}") from None
    except ValueError:
        raise SettingsError(f"the file that {variable} names is not UTF-8") from None
    if not secret:
        raise SettingsError(f"the file that {variable} names is empty")
    return secret


def _check_environment(environment: Mapping[str, str]) -> None:
    known = variables()
    unknown = sorted(name for name in environment if name.upper().startswith(PREFIX) and name.upper() not in known)
    if unknown:
        raise SettingsError(f"environment variable {unknown[0]} is unknown; the known ones are {', '.join(known)}")


def _check_file(path: Path) -> None:
    try:
        tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the configuration file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"the configuration file {path} is not TOML in UTF-8: {error}") from None


def _explain(error: ValidationError) -> str:
    """The first thing that is wrong, without the value: it may be a secret."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    problem = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
    return f"setting {place}: {problem}" if place else problem.removeprefix("Value error, ")
