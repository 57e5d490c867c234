"""Speed, memory and bytes, as ratios against peers in one run: `python -m benchmarks.NAME [--quick] [--json]`."""
