"""A command on a terminal of its own: what is typed reaches it by the keyboard, and what it shows can be waited for."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

_CODES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>]|\r")


class Terminal:
    """A process and the other end of its terminal."""

    def __init__(self, arguments, folder, rows=40, columns=120):
        self.shown = ""
        self._unread = b""
        self.process, self._keyboard = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            # The prompt would ask the terminal where its cursor is; this one does not know.
            state = {"PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm", "XDG_STATE_HOME": str(folder / "state")}
            os.execve(sys.executable, [sys.executable, "-m", "windrow", *arguments], {**os.environ, **state})
        fcntl.ioctl(self._keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self._keyboard, text.encode())

    def wait_for(self, text, seconds=30):
        """Wait until something is shown; what was shown up to then is taken off."""
        ends = time.monotonic() + seconds
        while text not in self.shown:
            left = ends - time.monotonic()
            assert left > 0, f"{text!r} was not shown: {self.shown[-2000:]!r}"
            if not self._read(left):
                break
        before, found, self.shown = self.shown.partition(text)
        assert found, f"{text!r} was not shown before the end: {before[-2000:]!r}"
        return before + found

    def _read(self, seconds):
        ready, _, _ = select.select([self._keyboard], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self._keyboard, 65536)
        except OSError:  # the process has closed its end
            return False
        self._unread += data
        self.shown += _CODES.sub(b"", self._unread).decode(errors="replace")
        self._unread = b""
        return bool(data)

    def end(self, seconds=30):
        """Wait for the process and return its exit code."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._read(0.1)
            pid, status = os.waitpid(self.process, os.WNOHANG)
            if pid:
                self.process = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("the process did not end")

    def close(self):
        if self.process:
            os.kill(self.process, 9)
            os.waitpid(self.process, 0)
        os.close(self._keyboard)
