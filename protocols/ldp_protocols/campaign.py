"""The campaign document: compiled from a draft on the server, verified and interpreted on the device.

The bytes are the document: it is served as stored, hashed as received, and never changes.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from ldp_protocols.document.authored import MOMENTS, Evaluation, Privacy, asked_features, read_authored
from ldp_protocols.document.federation import Federation
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.document.issuer import Issuer
from ldp_protocols.document.questions import MOST_PRODUCTS, Question, read_question
from ldp_protocols.document.schema import MOST_FEATURES, Label, Projection
from ldp_protocols.document.windows import Windows
from ldp_protocols.errors import DocumentError, DraftError
from ldp_protocols.exact import exact_epsilon, float_up
from ldp_protocols.features import Feature
from ldp_protocols.fields import Fields, parse_json
from ldp_protocols.framing import MOST_PADDED, longest
from ldp_protocols.mechanisms import DirectEncoding

if TYPE_CHECKING:
    from typing import Self

LARGEST_DOCUMENT: Final = 4 << 20
"""Bytes; a device refuses longer documents before parsing them."""


@dataclass(frozen=True)
class Campaign:
    """A published campaign. ``document`` are the exact bytes, ``id`` their SHA-256 in base64url without padding.

    ``asks`` is ``model`` (what a Naive Bayes model needs), ``statistics`` (of values alone: ``label`` is false),
    ``moments`` (what fitting a projection needs) or ``score`` (how good the model of the ``evaluation`` is).
    ``windows`` make it a series: each device answers once, in one of them; it ``opens`` with the first and ``closes``
    some days after the last. With an ``issuer`` the upload of a device shows one of its tokens; with a ``gateway`` it
    is sealed to that key. One with a ``federation`` asks nodes, and no device. ``operator`` answers for it, ``contact``
    says where questions go, ``privacy_url`` has the privacy notice; ``keep_days`` after it is over nothing is kept by
    which a single answer could be found. These four are the author's word, and None where nothing was said.

    Examples
    --------
    >>> age = {"name": "age", "kind": "categorical", "values": ["young", "old"]}
    >>> label = {"name": "suits", "classes": ["yes", "no"]}
    >>> draft = {"version": 1, "title": "Does it suit?", "label": label, "features": [age], "privacy": {"epsilon": 1.0}}
    >>> campaign = Campaign.compile(draft)
    >>> [question.feature for question in campaign.questions]
    [None, 'age']
    >>> Campaign.parse(campaign.document, campaign.id) == campaign
    True
    """

    document: bytes
    title: str
    purpose: str
    label: Label
    features: tuple[Feature, ...]
    privacy: Privacy
    projection: Projection | None
    asks: str
    study: str | None
    opens: datetime | None
    closes: datetime | None
    questions: tuple[Question, ...]
    evaluation: Evaluation | None = field(default=None, compare=False)  # the document is compared
    windows: Windows | None = None
    issuer: Issuer | None = None
    gateway: Gateway | None = None
    federation: Federation | None = None
    operator: str | None = None
    contact: str | None = None
    privacy_url: str | None = None
    keep_days: int | None = None

    @classmethod
    def compile(cls, draft: Mapping[str, Any] | str | bytes) -> Self:
        """Compile a draft (a mapping, or JSON text) into a campaign. The same draft gives the same bytes and id.

        Raises DraftError, which names the field and says what would be right.
        """
        from ldp_protocols.drafting import compile_document  # Here: a device compiles nothing.

        document = compile_document(draft)
        try:
            return cls.parse(document)
        except DocumentError as error:
            raise DraftError("draft", f"compiles to a document no device accepts: {error}") from None

    @classmethod
    def parse(cls, document: bytes, campaign_id: str | None = None) -> Self:
        """Verify and read document bytes; ``campaign_id``, where known, must be their hash.

        Recomputes the loss of every question and of the whole campaign. Raises DocumentError with a ``code``.
        """
        if len(document) > LARGEST_DOCUMENT:  # Before the hash, which takes its time.
            raise DocumentError("invalid-document", f"a document has at most {LARGEST_DOCUMENT} bytes")
        if campaign_id is not None and document_id(document) != campaign_id:
            raise DocumentError(
                "wrong-hash", f"the document's SHA-256 is {document_id(document)}, not the campaign id {campaign_id}"
            )
        return cls(**_parse(bytes(document)))

    @cached_property
    def id(self) -> str:
        return document_id(self.document)

    @cached_property
    def groups(self) -> tuple[tuple[Question, ...], ...]:
        """The questions by group: a device answers at most one of each."""
        members: dict[int, list[Question]] = {}
        for question in self.questions:
            members.setdefault(question.group, []).append(question)
        return tuple(map(tuple, members.values()))

    @property
    def pools(self) -> tuple[tuple[Question, ...], ...]:
        """The questions of which a device answers one each: with ``answers: "one"`` all of them are one pool."""
        return self.groups if self.privacy.answers == "all" else (self.questions,)

    @cached_property
    def counted(self) -> tuple[Question, ...]:
        """The questions counted apart, window by window in a series; the ``question`` of a report is its place here."""
        return self.questions * (1 if self.windows is None else self.windows.count)

    @cached_property
    def longest_upload(self) -> int:
        """Bytes of the longest upload of everything that one device answers."""
        # The numbers of the last window are the longest.
        first = len(self.counted) - len(self.questions)
        return longest([(first + question.index, question.mechanism.width) for question in pool] for pool in self.pools)

    @property
    def upload_bytes(self) -> int:
        """Length of every device's upload: that of the longest one, to which zeros fill up a shorter one."""
        return min(self.longest_upload, MOST_PADDED)

    @cached_property
    def one_window(self) -> Campaign:
        """The campaign as it stands in any one of its windows; itself where it has none."""
        return self if self.windows is None else replace(self, windows=None)

    def _repr_html_(self) -> str:
        from html import escape

        rows = [(self.label.name, f"one of {', '.join(self.label.classes)}", "learned")] if self.label else []
        rows += [(one.name, one.wanted(), "asked") for one in self.features]
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        heading = f"<b>{escape(self.title)}</b>, epsilon {self.realised_epsilon:.6g}, {len(self.questions)} questions"
        return f"<p>{heading}<br><code>{self.id}</code></p><table><tr>{'</tr><tr>'.join(cells)}</tr></table>"

    def feature_of(self, question: Question) -> Feature | None:
        """The asked feature a question is about (the first of two), None for the label question."""
        return None if question.feature is None else self.feature(question.feature)

    def feature(self, name: str | None) -> Feature:
        """The asked feature of this name; KeyError for any other."""
        return self._asked_by_name[name]

    @cached_property
    def asked(self) -> tuple[Feature, ...]:
        """The features that questions are about: the declared ones, a projection's inputs replaced by its outputs."""
        return asked_features(self.features, self.projection)

    @cached_property
    def _asked_by_name(self) -> Mapping[str | None, Feature]:
        return {feature.name: feature for feature in self.asked}

    @property
    def answers_of_a_person(self) -> int:
        """Answers that whoever lies has counted at most: with an issuer the tokens of one person, else those of one
        device, of which a person may pretend to have many.
        """
        return 1 if self.issuer is None else self.issuer.tokens

    @cached_property
    def loss(self) -> Fraction:
        """An upper bound of what one device loses in this campaign, recomputed from the questions' integers."""
        return sum((max(question.loss() for question in pool) for pool in self.pools), Fraction(0))

    @property
    def realised_epsilon(self) -> float:
        """:attr:`loss`, rounded up to a double; never above ``privacy.epsilon``."""
        return float_up(self.loss)


def document_id(document: bytes) -> str:
    """SHA-256 of the bytes, base64url without padding: 43 characters."""
    return urlsafe_b64encode(hashlib.sha256(document).digest()).rstrip(b"=").decode("ascii")


@lru_cache(maxsize=16)
def _parse(document: bytes) -> dict[str, Any]:
    """Everything but the hash check. Cached by the bytes: a backend contributes for many people in one campaign."""

    def refuse(field: str, problem: str) -> DocumentError:
        return DocumentError("invalid-document", f"{field}: {problem}")

    fields = Fields(parse_json(document, refuse), "", refuse)
    authored = read_authored(fields, refuse)
    values = fields.sequence("questions", least=1, most=2 * MOST_FEATURES + 1 + MOST_PRODUCTS)
    fields.finish()
    features = asked_features(authored["features"], authored["projection"])
    evaluation: Evaluation | None = authored["evaluation"]
    if evaluation is not None and evaluation.edges is None and len(authored["label"].classes) == 2:
        raise refuse("evaluation.edges", "are missing; a document has them where there are two classes")
    shape = {"moments": authored["asks"] == MOMENTS, "places": evaluation.places if evaluation else 0}
    questions = tuple(
        read_question(value, index, authored["label"], features, refuse, **shape) for index, value in enumerate(values)
    )
    if len({(question.kind, question.group) for question in questions}) != len(questions):
        raise refuse("questions", "every kind of question stands at most once for a feature or the label")
    campaign = Campaign(document=document, questions=questions, **authored)
    total = campaign.privacy.epsilon
    if campaign.loss > exact_epsilon(total):
        reason = (
            f"a device would lose up to {campaign.realised_epsilon:.6g}, above the declared total epsilon of {total}"
        )
        raise DocumentError("loss-above-epsilon", reason)
    crowd = campaign.privacy.crowd
    if crowd is not None:
        from ldp_protocols.blanket import blanket_of, keeps  # Here: few campaigns promise a crowd's guarantee.

        blanket = blanket_of(questions)
        if blanket is None:
            raise refuse("questions", f"are all asked by {DirectEncoding.name} in a campaign with a crowd")
        if not keeps(blanket, crowd):
            reason = (
                f"{crowd.reports} mixed reports may reveal more than epsilon {crowd.epsilon:g}, delta {crowd.delta:g}"
            )
            raise DocumentError("crowd-above-promise", reason)
    return {"document": document, "questions": questions, **authored}
