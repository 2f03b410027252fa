"""One contract, every storage."""

import sqlite3
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from forking import holds_in_a_child, needs_fork

import ldp_client.storage.sqlite
from ldp_client import MemoryStorage, StorageError
from ldp_client.runtime import ForkSafeLock
from ldp_client.storage.contract import pack, unpack
from ldp_client.storage.location import open_cache
from ldp_client.storage.sqlite import SqliteStorage

MAKERS = {
    "memory": lambda _: MemoryStorage(),
    "sqlite": lambda folder: SqliteStorage(folder / "device.db"),
}


@pytest.fixture(params=MAKERS)
def storage(request, tmp_path):
    return MAKERS[request.param](tmp_path)


def test_a_new_storage_is_empty_and_reading_it_leaves_it_so(storage, tmp_path):
    with storage.transaction(write=False) as transaction:
        assert transaction.get("a") is None
        assert transaction.items("") == []
    assert list(tmp_path.iterdir()) == []


def test_an_exception_rolls_back_everything(storage):
    with storage.transaction(write=True) as transaction:
        transaction.put("kept", b"1")

    def fail():
        with storage.transaction(write=True) as transaction:
            transaction.put("lost", b"1")
            transaction.delete("kept")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with storage.transaction(write=False) as transaction:
        assert transaction.items("") == [("kept", b"1")]


def test_items_have_the_prefix_and_ascend_up_to_the_limit(storage):
    with storage.transaction(write=True) as transaction:
        for key in ("b/2", "b/1", "a", "b/3", "c"):
            transaction.put(key, key.encode())
        transaction.delete("b/3")
        transaction.delete("not there")
    with storage.transaction(write=False) as transaction:
        assert transaction.items("b/") == [("b/1", b"b/1"), ("b/2", b"b/2")]
        assert transaction.items("b/", 1) == [("b/1", b"b/1")]
        assert [key for key, _ in transaction.items("")] == ["a", "b/1", "b/2", "c"]


def test_writing_transactions_of_many_threads_lose_no_update(storage):
    def add(_):
        for _ in range(10):
            with storage.transaction(write=True) as transaction:
                transaction.put("count", b"%d" % (int(transaction.get("count") or b"0") + 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    with storage.transaction(write=False) as transaction:
        assert transaction.get("count") == b"40"


def test_the_file_is_readable_by_its_owner_only(tmp_path):
    path = tmp_path / "device.db"
    with SqliteStorage(path).transaction(write=True) as transaction:
        transaction.put("a", b"1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("statement", "write", "code"),
    [
        *(("PRAGMA user_version = 2", write, "storage-newer") for write in (False, True)),
        ("CREATE TABLE entries (something)", True, "storage-corrupt"),
    ],
)
def test_a_file_of_a_later_version_and_a_foreign_database_are_refused_and_left_alone(tmp_path, statement, write, code):
    path = tmp_path / "device.db"
    if code == "storage-newer":
        with SqliteStorage(path).transaction(write=True) as transaction:
            transaction.put("a", b"1")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    before = path.read_bytes()
    with pytest.raises(StorageError) as caught, SqliteStorage(path).transaction(write=write):
        pass
    assert caught.value.code == code
    assert path.read_bytes() == before


@needs_fork
def test_a_fork_waits_for_the_transaction_of_another_thread(tmp_path):
    storage = SqliteStorage(tmp_path / "device.db")
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with storage.transaction(write=True) as transaction:
            transaction.put("held", b"1")
            inside.set()
            leave.wait(5)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(5)
    threading.Timer(0.1, leave.set).start()

    def reads():
        with storage.transaction(write=True) as transaction:
            return transaction.get("held") == b"1"

    # A lock inherited in mid-transaction would make this wait for ever, or fail as busy.
    assert holds_in_a_child(reads)
    holder.join()


@pytest.mark.parametrize(("name", "size", "checks"), [("device", 1, 3), ("scope/1/device", 2 << 20, 1)])
def test_a_ledger_is_checked_before_every_change_and_a_large_file_of_many_users_at_intervals(
    tmp_path, monkeypatch, name, size, checks
):
    """However much was fetched: that is kept in a file of its own."""
    with open_cache(tmp_path / "device.db").transaction(write=True) as transaction:
        transaction.put("model/x", bytes(3 << 20))
    storage = SqliteStorage(tmp_path / "device.db")
    with storage.transaction(write=True) as transaction:
        transaction.put(name, bytes(size))
    executed = watch(monkeypatch)
    for _ in range(3):
        with storage.transaction(write=True):
            pass
    assert executed.count("PRAGMA quick_check(1)") == checks
    monkeypatch.setattr(ldp_client.storage.sqlite, "STORAGE_CHECK", 0.0)
    with storage.transaction(write=True):
        pass
    assert executed.count("PRAGMA quick_check(1)") == checks + 1


def test_on_macos_a_commit_leaves_the_drives_own_cache(tmp_path, monkeypatch):
    executed = watch(monkeypatch)
    for platform in ("linux", "darwin"):
        monkeypatch.setattr(ldp_client.storage.sqlite.sys, "platform", platform)
        with SqliteStorage(tmp_path / platform).transaction(write=True):
            pass
        assert ("PRAGMA fullfsync = ON" in executed) == (platform == "darwin")


def test_a_commit_outlives_a_power_cut_and_so_does_the_end_of_its_journal(tmp_path):
    """3 is EXTRA: a journal that came back would undo a commit, and a report that was sent would be drawn anew."""
    storage = SqliteStorage(tmp_path / "device.db")
    for write in (True, False):
        with storage.transaction(write=write) as transaction:
            assert transaction._connection.execute("PRAGMA synchronous").fetchone() == (3,)
            assert transaction._connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_what_is_discarded_leaves_no_journal(tmp_path):
    storage = SqliteStorage(tmp_path / "device.db")
    storage.discard()  # Nothing is there yet.
    (tmp_path / "device.db-journal").write_bytes(b"what the last change overwrote")
    (tmp_path / "other.db").write_bytes(b"another's")
    storage.discard()
    with storage.transaction(write=True) as transaction:
        transaction.put("a", b"1")
    (tmp_path / "device.db-journal").write_bytes(b"what the last change overwrote")
    storage.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["other.db"]


def watch(monkeypatch):
    """The statements that storages execute from now on."""
    executed = []
    real = sqlite3.connect

    class Watched(sqlite3.Connection):
        def execute(self, statement, *arguments):
            executed.append(statement)
            return super().execute(statement, *arguments)

    monkeypatch.setattr(sqlite3, "connect", lambda *names, **options: real(*names, factory=Watched, **options))
    return executed


@needs_fork
def test_a_lock_is_a_lock_in_every_thread_of_a_child():
    """Whoever held it in the parent: it is made anew once, by the fork, and not by the threads that find it."""
    lock = ForkSafeLock()
    assert lock.acquire(1)

    def is_held_by_one_at_a_time():
        inside, most = 0, 0

        def enter():
            nonlocal inside, most
            for _ in range(200):
                with lock:
                    inside += 1
                    most = max(most, inside)
                    inside -= 1

        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=enter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        return most == 1 and not any(thread.is_alive() for thread in threads)

    assert holds_in_a_child(is_held_by_one_at_a_time)


def test_a_value_that_was_moved_to_another_key_is_damage(code_of):
    """A report's id stands in its key alone."""
    stored = pack("outbox/a", 1)
    assert unpack("outbox/a", stored) == 1
    assert code_of(StorageError, unpack, "outbox/b", stored) == "storage-corrupt"
