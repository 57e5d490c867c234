"""One sorted split: how it is written, what it says of itself, and how it is read."""
