"""The few Parquet bytes that no library hands out: footers, page indexes and bloom filters, and footers of our own."""
