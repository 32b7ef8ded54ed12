# SPDX-License-Identifier: Apache-2.0
"""The network between one host and the API server, which can be cut, stalled and slowed.

What is held while stalled is never delivered late: a stall ends with a cut, as when a router forgets its connections.
"""
import asyncio
import random
import socket
import struct
import threading

CHUNK = 65536


class Proxy:
    """Own thread, own loop; the methods may be called from any thread."""

    def __init__(self, server_port, seed):
        self.server_port, self.rand = server_port, random.Random(seed)
        self.refusing = self.stalled = False
        self.delay_s, self.cut_in = 0.0, 0  # cut_in: bytes of answers until a connection is cut in the middle; 0 = never
        self.writers, self.accepted = set(), 0
        self.loop = asyncio.new_event_loop()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(lambda loop, context: None)  # ends of connections are what this is for
        self.loop.run_until_complete(asyncio.start_server(self._client, sock=self.listener))
        self.loop.run_forever()

    async def _client(self, reader, writer):
        self.accepted += 1
        if self.refusing:
            self._abort(writer)
            return
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.server_port)
        except OSError:
            self._abort(writer)
            return
        pair = (writer, upstream_writer)
        self.writers.update(pair)
        await asyncio.gather(self._pump(reader, upstream_writer, pair, False), self._pump(upstream_reader, writer, pair, True))
        self.writers.difference_update(pair)

    async def _pump(self, reader, writer, pair, answers):
        try:
            while data := await reader.read(CHUNK):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                while self.stalled:
                    await asyncio.sleep(0.02)
                if answers and self.cut_in and (cut := self.cut_in - len(data)) <= 0:
                    writer.write(data[:self.cut_in])
                    await writer.drain()
                    self.cut_in = 0
                    break
                if answers and self.cut_in:
                    self.cut_in = cut
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        for w in pair:
            self._abort(w)

    @staticmethod
    def _abort(writer):
        s = writer.get_extra_info("socket")
        if s is not None:
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
        writer.transport.abort()

    def cut(self):
        self.loop.call_soon_threadsafe(lambda: [self._abort(w) for w in list(self.writers)])

    def stall(self):
        self.stalled = True

    def resume(self):
        """Everything passes again, on new connections where the old ones were held."""
        held, self.refusing, self.delay_s, self.cut_in = self.stalled, False, 0.0, 0
        if held:
            self.loop.call_soon_threadsafe(self._end_stall)

    def _end_stall(self):
        for w in list(self.writers):
            self._abort(w)
        self.stalled = False

    def close(self):
        self.cut()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.listener.close()
