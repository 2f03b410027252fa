"""What a server writes: the accepted reports of a commit, one file a slot, before anybody gets an answer.

Files are written as *pending* inside the transaction that counts their reports, and published after it committed. A
process that dies between the two leaves pending files; :meth:`Archive.pending` hands their reports to whoever starts
next, who counts them again: those of a commit that held are duplicates, those of one that did not are counted now. In
both cases archive and store agree afterwards, and the pending file is published.

A pending file is called as it will be (:mod:`ldp_aggregator.archive.reading`), in the folder ``pending``.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.archive.files import ArchiveError, Kept, decode_file, encode_file
from ldp_aggregator.archive.places import Place
from ldp_aggregator.archive.reading import DOCUMENT, REPORTS, file_name
from ldp_aggregator.archive.slots import check_slots, slot_of
from ldp_aggregator.counting.rows import Rows
from protocols import Campaign
from protocols.wire.upload import Block

PENDING: Final = "pending"


class Archive:
    """An archive of reports, as a server writes it. Not for several threads at once.

    ``slots`` is the number of files a large commit becomes, and how many parts a recount can run on at once.
    """

    def __init__(self, place: Place, slots: int = 16) -> None:
        check_slots(slots)
        self._place = place
        self._slots = slots
        self._known: set[str] = set()
        self._written: list[tuple[str, str]] = []

    def write(self, campaign: Campaign, ids: Rows, rows: Mapping[int, Rows], counted: NDArray[np.bool_]) -> None:
        """Keep the reports that a transaction has counted, before it commits.

        ``ids``, shape (n, 16), and ``counted``, shape (n,), are in the order of ``rows``: question by question.
        Raises ArchiveError; the transaction must not commit then.
        """
        if not counted.any():
            return
        self._introduce(campaign)
        group = secrets.token_hex(8)
        for slot, kept in self._divided(ids, rows, counted):
            name = file_name(slot, self._slots, group)
            pending = f"{campaign.id}/{PENDING}/{name}"
            self._written.append((pending, f"{campaign.id}/{REPORTS}/{name}"))
            self._place.put(pending, encode_file(kept))

    def publish(self) -> None:
        """After the commit: what was written belongs to the archive.

        A file that somebody else has published meanwhile is there. Raises ArchiveError, and may be called again.
        """
        while self._written:
            self._place.move(*self._written[-1])
            self._written.pop()

    def discard(self) -> None:
        """After a transaction that was rolled back: nothing of it was counted, and nothing of it is kept."""
        while self._written:
            self._place.remove(self._written.pop()[0])

    def leave(self) -> None:
        """After a commit of which nobody knows whether it held: what was written stays pending."""
        self._written.clear()

    def pending(self, campaign: Campaign) -> list[str]:
        """Names of the pending files of a campaign, for :meth:`read_pending` and :meth:`publish_pending`."""
        return self._place.names(f"{campaign.id}/{PENDING}")

    def read_pending(self, campaign: Campaign, name: str) -> tuple[Block, ...]:
        """The reports of a pending file, as an upload would bring them; none where it was published meanwhile."""
        try:
            data = self._place.read(name)
        except ArchiveError:
            if name not in self.pending(campaign):
                return ()
            raise
        return tuple(
            Block(question, kept.ids.tobytes(), kept.payloads.tobytes())
            for question, kept in decode_file(data, campaign, name).items()
        )

    def publish_pending(self, campaign: Campaign, name: str) -> None:
        """A pending file whose reports are all counted belongs to the archive."""
        self._place.move(name, f"{campaign.id}/{REPORTS}/{name.rsplit('/', 1)[-1]}")

    def _introduce(self, campaign: Campaign) -> None:
        if campaign.id not in self._known:
            self._place.put(f"{campaign.id}/{DOCUMENT}", campaign.document)
            self._known.add(campaign.id)

    def _divided(
        self, ids: Rows, rows: Mapping[int, Rows], counted: NDArray[np.bool_]
    ) -> list[tuple[int, dict[int, Kept]]]:
        places = slot_of(ids, self._slots)
        files = []
        for slot in np.unique(places[counted]).tolist():
            here, start, kept = counted & (places == slot), 0, {}
            for question, members in rows.items():
                chosen = here[start : start + len(members)]
                if chosen.any():
                    kept[question] = Kept(ids[start : start + len(members)][chosen], members[chosen])
                start += len(members)
            files.append((slot, kept))
        return files
