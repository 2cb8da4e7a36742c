"""A worker on the standard library alone, against which the cases are tried out."""
