"""Clients at the level of bytes and frames, for what no HTTP library shows."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable

from h2.config import H2Configuration
from h2.connection import H2Connection
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame, RstStreamFrame

TIMEOUT_S = 10.0  # so that a broken server fails a test instead of hanging it
FRAME_HEAD_BYTES = 9


def connect(
    port: int, ca_file: str = "", alpn: str = "http/1.1", *, receives_bytes: int = 0
) -> socket.socket:
    """A connection to this machine, encrypted when there is a CA to trust.

    With `receives_bytes` hardly more than that gets through before it is read.
    """
    raw = socket.socket()
    raw.settimeout(TIMEOUT_S)
    if receives_bytes:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives_bytes)
    raw.connect(("127.0.0.1", port))
    if not ca_file:
        return raw
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols([alpn])
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


def post(path: str, body: object) -> bytes:
    """An HTTP/1.1 request."""
    data = json.dumps(body, ensure_ascii=False).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: fake\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


def receive_all(connection: socket.socket) -> bytes:
    """Everything until the peer closes. Raises `ConnectionResetError`."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def receive_until(connection: socket.socket, mark: bytes) -> bytes:
    """Everything up to and including `mark`."""
    received = b""
    while mark not in received:
        more = connection.recv(65_536)
        assert more, f"closed before {mark!r}: {received!r}"
        received += more
    return received


class Http2Client:
    """One HTTP/2 connection whose every frame a test can see.

    Frames are read by hand because h2 takes a connection for dead after GOAWAY, streams under way included.
    """

    def __init__(self, port: int, ca_file: str) -> None:
        self.frames: list[Frame] = []
        self._socket = connect(port, ca_file, "h2")
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._unread = b""
        self._h2.initiate_connection()
        self._flush()

    def post(self, path: str, body: object) -> int:
        """Sends a request; returns its stream."""
        stream = self._h2.get_next_available_stream_id()
        head = [(":method", "POST"), (":path", path), (":scheme", "https"), (":authority", "fake")]
        self._h2.send_headers(stream, head)
        self._h2.send_data(stream, json.dumps(body).encode(), end_stream=True)
        self._flush()
        return stream

    def reset(self, stream: int) -> None:
        self._h2.reset_stream(stream)
        self._flush()

    def read_until(self, met: Callable[[], bool]) -> None:
        """Fails when the server closes first."""
        while not met():
            assert self.read_some(), f"closed; saw {self.frames}"

    def read_to_the_end(self) -> None:
        while self.read_some():
            pass

    def read_some(self) -> bool:
        """False when the server has closed."""
        data = self._socket.recv(65_536)
        self._unread += data
        known = len(self.frames)
        while frame := self._next_frame():
            self.frames.append(frame)
        if data and self.last_stream_of_goaway() is None:
            self._h2.receive_data(data)
            for frame in self.frames[known:]:
                if isinstance(frame, DataFrame) and frame.flow_controlled_length:
                    self._h2.acknowledge_received_data(frame.flow_controlled_length, frame.stream_id)
            self._flush()
        return bool(data)

    def body(self, stream: int) -> bytes:
        return b"".join(frame.data for frame in self.data_frames(stream))

    def data_frames(self, stream: int) -> list[DataFrame]:
        return [f for f in self.frames if isinstance(f, DataFrame) and f.stream_id == stream]

    def ended(self, stream: int) -> bool:
        return any("END_STREAM" in frame.flags for frame in self.data_frames(stream))

    def answered(self, stream: int) -> bool:
        return any(isinstance(f, HeadersFrame) and f.stream_id == stream for f in self.frames)

    def reset_by_server(self, stream: int) -> bool:
        return any(isinstance(f, RstStreamFrame) and f.stream_id == stream for f in self.frames)

    def last_stream_of_goaway(self) -> int | None:
        return next((f.last_stream_id for f in self.frames if isinstance(f, GoAwayFrame)), None)

    def close(self) -> None:
        self._socket.close()

    def _next_frame(self) -> Frame | None:
        if len(self._unread) < FRAME_HEAD_BYTES:
            return None
        frame, length = Frame.parse_frame_header(memoryview(self._unread[:FRAME_HEAD_BYTES]))
        end = FRAME_HEAD_BYTES + length
        if len(self._unread) < end:
            return None
        frame.parse_body(memoryview(self._unread[FRAME_HEAD_BYTES:end]))
        self._unread = self._unread[end:]
        return frame

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())
