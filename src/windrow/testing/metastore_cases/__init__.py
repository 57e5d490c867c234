"""The parts of `windrow.testing.MetastoreTests`, one module for each subject."""
