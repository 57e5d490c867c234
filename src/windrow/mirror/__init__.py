"""The Delta mirror: every table is a Delta table too, so that anyone can read its snapshots without Windrow."""
