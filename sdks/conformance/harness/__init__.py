"""What the cases stand on: the real server, worker programs, and a proxy between them."""
