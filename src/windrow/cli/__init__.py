"""The command line: the words of the public API, as text for people and as JSON for programs."""
