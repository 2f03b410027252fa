"""Log for an app's developer: each step and each failure with its cause, told to one function of the app's.

Safety: never a value of a record, a report's id, a token or a payload. A cause is the kind of an error and the
operating system's own words; what an app's own code raises is told by its type alone.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from ldp_client.errors import TransportError
from ldp_protocols.errors import DocumentError, LdpError

if TYPE_CHECKING:
    from ldp_client.network.transport import Cancellation, Request, Response, Transport
    from ldp_client.runtime import Clock

P = ParamSpec("P")
Result = TypeVar("Result")
Owner = TypeVar("Owner")

_OK: Final = 200
_NAMES: Final = ("state", "model", "reports", "directories")
_UPLOAD: Final = "upload"


class Step(NamedTuple):
    """``name`` is what was done: a request (``document``, ``state``, ``model``, ``directory``, ``upload``), a call
    (``next-step``, ``decide``, ``grant``, ``obtain-token``, ``contribute``, ``withdraw``, ``classifier``) or
    ``delivery``. ``code`` is that of the failure, of :class:`ldp_client.NextStep` what it says; None where all is well.
    ``cause`` begins with its kind: ``dns``, ``tls``, ``timeout``, ``refused``, ``reset``, ``network``, ``document``, or
    the type of an error. ``time`` is the clock's; ``campaign_id`` is empty where it is about none, or not known.
    """

    time: float
    campaign_id: str
    name: str
    code: str | None
    cause: str | None


Log = Callable[[Step], None]


def to_logging(step: Step) -> None:
    """Tell the logger ``ldp_client`` of the standard library: ``Device(..., log=ldp_client.to_logging)``."""
    import logging

    level = logging.INFO if step.cause is None else logging.WARNING
    logging.getLogger("ldp_client").log(level, "%s: %s (%s) %s", step.name, step.code, step.cause, step.campaign_id)


class Teller:
    """Tells an app's ``log``; what that raises troubles nobody. None tells nobody."""

    def __init__(self, log: Log | None = None, clock: Clock | None = None) -> None:
        self._log = log
        self._clock = clock

    def tell(self, name: str, campaign_id: str, code: str | None, error: BaseException | None = None) -> None:
        """Tell of one step."""
        if self._log is not None and self._clock is not None:
            with contextlib.suppress(Exception):
                self._log(Step(self._clock.time(), campaign_id, name, code, None if error is None else cause_of(error)))

    def answered(self, name: str, campaign_id: str, answer: Response | Exception) -> None:
        """Tell of an exchange, by the code of its answer or of why there is none."""
        if isinstance(answer, Exception):
            self.tell(name, campaign_id, code_of(answer), answer)
        elif self._log is not None:
            code = None if answer.status == _OK else answer.problem_code() or f"http-{answer.status}"
            self.tell(name, campaign_id, code)

    @contextlib.contextmanager
    def step(self, name: str, campaign_id: str) -> Iterator[None]:
        """Tell how what is done inside ends."""
        try:
            yield
        except Exception as error:
            self.tell(name, campaign_id, code_of(error), error)
            raise
        self.tell(name, campaign_id, None)

    def transport(self, transport: Transport) -> Transport:
        """The transport, told of, where somebody listens."""
        return transport if self._log is None else _ToldTransport(transport, self)


SILENT: Final = Teller()


def told(name: str) -> Callable[[Callable[Concatenate[Owner, P], Result]], Callable[Concatenate[Owner, P], Result]]:
    """Tell of every call of a campaign's method under this name."""

    def decorate(method: Callable[Concatenate[Owner, P], Result]) -> Callable[Concatenate[Owner, P], Result]:
        @functools.wraps(method)
        def call(owner: Owner, /, *arguments: P.args, **options: P.kwargs) -> Result:
            campaign: Any = owner
            with campaign._install.teller.step(name, campaign.id):
                return method(owner, *arguments, **options)

        return call

    return decorate


class _ToldTransport:
    """A transport whose every exchange is told of."""

    def __init__(self, transport: Transport, teller: Teller) -> None:
        self._transport = transport
        self._teller = teller
        self.begins_body = getattr(transport, "begins_body", False)

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        name, campaign_id = _subject(request)
        try:
            answer = self._transport.send(request, timeout, cancellation)
        except Exception as error:
            self._teller.answered(name, campaign_id, error)
            raise
        self._teller.answered(name, campaign_id, answer)
        return answer


def _subject(request: Request) -> tuple[str, str]:
    """The name of a request, and the campaign where its address says it."""
    if request.method == "POST":
        name = _UPLOAD
    else:
        last = request.url.rsplit("/", 2)
        name = last[2] if last[2] in _NAMES else "directory" if last[1] == "directories" else "document"
    _, _, rest = request.url.partition("/v1/campaigns/")
    return name, rest.partition("/")[0]


def code_of(error: BaseException) -> str:
    """The code of an error, ``unexpected`` for one that is none of this package's."""
    return error.code if isinstance(error, LdpError) else "unexpected"


def cause_of(error: BaseException) -> str | None:
    """Tell why, by the error that began it; None where the code says it all."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    if isinstance(first, DocumentError):
        return f"document: {first}"
    if isinstance(first, LdpError):
        return "timeout" if isinstance(first, TransportError) and first.code == "timeout" else None
    kind = _kind(first)
    if hasattr(first, "verify_message"):
        return f"{kind}: {first.verify_message}"
    words = first.strerror if isinstance(first, OSError) and isinstance(first.strerror, str) else type(first).__name__
    return words if kind == words else f"{kind}: {words}"


def _kind(error: BaseException) -> str:
    import socket  # like the next, what an app that starts need not load
    import ssl

    kinds: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
        (socket.gaierror, "dns"),
        (ssl.SSLError, "tls"),
        (TimeoutError, "timeout"),
        (ConnectionRefusedError, "refused"),
        ((ConnectionResetError, BrokenPipeError), "reset"),
    )
    name = next((kind for types, kind in kinds if isinstance(error, types)), None)
    if name is None:
        return "network" if type(error) is OSError else type(error).__name__
    return name
