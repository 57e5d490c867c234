"""What sets one kind of object store apart from the others, written down so that one class can serve them all."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.storage.ranges import gap_for

__all__ = ["AZURE", "GCS", "HTTP", "LOCAL_GAP", "MEMORY", "S3", "S3_EXPRESS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object store: its class in obstore, how its variables start (if it has any), and what it can do."""

    name: str
    builder: str
    variables: str
    gap: int
    options: tuple[tuple[str, str], ...] = ()
    read_only: bool = False
    answers_suffixes: bool = True
    lists_in_order: bool = True


# What a solid-state disk reads in the time of a system call.
LOCAL_GAP = gap_for(10e-6, 2e9)

# The gaps of remote stores come from what one connection shows within the cloud for requests of some 64 KiB.
_S3_GAP = gap_for(0.025, 60e6)

# Windrow deletes one object at a time, which every S3-compatible store understands; deletes in bulk some do not.
_S3_OPTIONS = (("disable_bulk_delete", "true"),)

MEMORY = Kind("memory", "MemoryStore", "", gap=0)
S3 = Kind("S3", "S3Store", "aws_", gap=_S3_GAP, options=_S3_OPTIONS)
S3_EXPRESS = Kind("S3 Express", "S3Store", "aws_", gap=_S3_GAP // 4, options=_S3_OPTIONS, lists_in_order=False)
GCS = Kind("Google Cloud Storage", "GCSStore", "google_", gap=gap_for(0.040, 60e6))
# With a hierarchical namespace, Azure lists folder by folder, which is not quite the order of keys.
AZURE = Kind("Azure", "AzureStore", "azure_", gap=gap_for(0.030, 60e6), answers_suffixes=False, lists_in_order=False)
# Variables that start with HTTP_ come from the other side of the wire where CGI is spoken: none is read.
HTTP = Kind("HTTP", "HTTPStore", "", gap=gap_for(0.050, 20e6), read_only=True)
