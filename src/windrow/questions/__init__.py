"""What a caller wants to know, without a file in it: SQL, conditions and filters as columns and predicates."""
