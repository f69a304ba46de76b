"""What people and their tools ask of a running process: the admin server and what it tells."""
