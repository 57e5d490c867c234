"""How the bytes of a plan arrive: local, remote, cached or decoded, of versions that are pinned meanwhile."""
