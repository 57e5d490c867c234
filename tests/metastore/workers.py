"""A program that runs jobs in processes of their own, all at once, and tells what became of them.

It reads a line of JSON, a list of jobs `[name, argument, ...]`, and answers with a line of JSON: for each job the
number of the signal that ended it (0 when none did) and what it returned.
"""

import json
import os
import resource
import signal
import sys

import pyarrow as pa

from windrow.errors import Conflict, WindrowError
from windrow.metastore import Checkpoint, CommitKind, SqlMetastore
from windrow.testing.metastore_cases.samples import SETTINGS, TABLE, a_split


def open_new(meet, url):
    """Open a database that may be empty."""
    meet()
    SqlMetastore(url).close()
    return "opened"


def publish_until(meet, url, step):
    """Publish a merge, and be killed at a step of it."""

    def at_step(name):
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with SqlMetastore(url, at_step=at_step) as metastore:
        meet()
        return publish_merge(metastore).version


def publish_attempt(meet, url, attempt):
    """Publish a merge as an attempt of its commit."""
    with SqlMetastore(url) as metastore:
        meet()
        return publish_merge(metastore, attempt).version


def publish_merge(metastore, attempt=1):
    """Replace s1 and s2 by m, as commit c2."""
    return metastore.publish(
        "c2",
        attempt=attempt,
        add=[a_split("m", "c2", rows=20)],
        replace=["s1", "s2"],
        checkpoint=Checkpoint("kafka", "1"),
        columns=["host"],
    )


def publish_with_little_room(meet, url, room):
    """Publish a merge when files cannot grow beyond some bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with SqlMetastore(url, sleep=lambda _: None) as metastore:
        meet()
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            return publish_merge(metastore).version
        except WindrowError as error:
            return [type(error).__name__, error.outcome, str(error)]


def publish_against_a_rival(meet, url, name, rounds):
    """In every round, replace the same split that the rival replaces; return the rounds that were won."""
    won = []
    with SqlMetastore(url) as metastore:
        for number in range(rounds):
            metastore.open_commit(TABLE, CommitKind.COMPACT, commit_id=f"{name}-{number}", lease=600)
        for number in range(rounds):
            commit_id = f"{name}-{number}"
            meet()
            try:
                metastore.publish(commit_id, add=[a_split(commit_id, commit_id)], replace=[f"s{number}"])
                won.append(number)
            except Conflict:
                pass
    return won


def publish_beside_others(meet, url, name, rounds):
    """Add a split in every round, while others add theirs; return the versions."""
    versions = []
    with SqlMetastore(url) as metastore:
        for number in range(rounds):
            commit_id = f"{name}-{number}"
            metastore.open_commit(TABLE, CommitKind.INGEST, commit_id=commit_id, lease=600)
            meet()
            versions.append(metastore.publish(commit_id, add=[a_split(commit_id, commit_id)]).version)
    return versions


def create_tables(meet, url, names):
    """Create tables one by one; return those that were made, or why one was not."""
    with SqlMetastore(url) as metastore:
        return [_made(meet, metastore, name) for name in names]


def _made(meet, metastore, name):
    meet()
    try:
        return metastore.create_table(name, SETTINGS, table_id=f"id-{name}").name
    except WindrowError as error:
        return type(error).__name__


def reserve_columns(meet, url, name, rounds):
    """Reserve, in every round, a column that others reserve too and one of its own; return their field ids."""
    found = {}
    with SqlMetastore(url) as metastore:
        for number in range(rounds):
            meet()
            names = (f"shared{number}", f"{name}{number}")
            reserved = metastore.reserve_columns(TABLE, pa.schema([(each, pa.string()) for each in names]))
            found |= {each: column.field_id for each, column in reserved.items()}
    return found


def open_commits(meet, url, rounds):
    """Open, in every round, a commit that others open too; return the attempts."""
    attempts = []
    with SqlMetastore(url) as metastore:
        for number in range(rounds):
            meet()
            opened = metastore.open_commit(TABLE, CommitKind.INGEST, commit_id=f"c{number}", lease=60)
            attempts.append(opened.attempt)
    return attempts


JOBS = {
    job.__name__: job
    for job in (
        open_new,
        create_tables,
        reserve_columns,
        open_commits,
        publish_until,
        publish_attempt,
        publish_with_little_room,
        publish_against_a_rival,
        publish_beside_others,
    )
}


class Meeting:
    """Where some processes wait for each other, until one of them ends."""

    def __init__(self, count):
        self._pipes = [os.pipe() for _ in range(count)]

    def join(self, mine):
        """Become one of the processes; return a function that returns once all have called it."""
        for number, (read, write) in enumerate(self._pipes):
            os.close(write if number == mine else read)
        mailbox = self._pipes[mine][0]
        others = [write for number, (_, write) in enumerate(self._pipes) if number != mine]

        def meet():
            for other in others:
                os.write(other, b".")
            for _ in others:
                if not os.read(mailbox, 1):
                    raise EOFError("the others have ended")

        return meet

    def leave(self):
        """Stay out of it."""
        for end in (end for pipe in self._pipes for end in pipe):
            os.close(end)


def _start(job, number, meeting):
    """Run a job in a process; return its id and the end of a pipe that gets its answer."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return process, read
    name, *arguments = job
    try:
        answer = JOBS[name](meeting.join(number), *arguments)
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    os.write(write, json.dumps(answer).encode())
    os._exit(0)


def _end(process, read):
    with os.fdopen(read, "rb") as answers:
        answer = answers.read()
    _, status = os.waitpid(process, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, json.loads(answer) if answer else None


def main():
    for line in sys.stdin:
        jobs = json.loads(line)
        meeting = Meeting(len(jobs))
        started = [_start(job, number, meeting) for number, job in enumerate(jobs)]
        meeting.leave()
        print(json.dumps([_end(*child) for child in started]), flush=True)


if __name__ == "__main__":
    main()
