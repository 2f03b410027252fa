"""Servers made of bare sockets, for what no well-behaved server does."""

import contextlib
import socket
import threading


class Scripted:
    """A server that runs ``script(connection)`` for every connection, one after another."""

    def __init__(self, script):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, args=(script,), daemon=True)
        self._thread.start()

    def _serve(self, script):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                script(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


class Raw(Scripted):
    """A server that says exactly these bytes to every connection, piece by piece, and notes what it hears first."""

    def __init__(self, *pieces, close=True):
        self.connections, self.heard = 0, []
        self._pieces, self._close, self._open = pieces, close, []
        super().__init__(self._say)
        self.url = f"http://127.0.0.1:{self.port}/"

    def _say(self, connection):
        self.connections += 1
        if not self._close:
            self._open.append(connection.dup())
        self.heard.append(connection.recv(65536))
        for piece in self._pieces:
            connection.sendall(piece)

    def __exit__(self, *error):
        super().__exit__(*error)
        for connection in self._open:
            connection.close()


def exactly(connection, count):
    """So many bytes; fewer where the other side hangs up."""
    received = b""
    while len(received) < count and (piece := connection.recv(count - len(received))):
        received += piece
    return received


def until_blank_line(connection):
    """The head of a message of HTTP."""
    received = b""
    while not received.endswith(b"\r\n\r\n") and (piece := connection.recv(1)):
        received += piece
    return received
