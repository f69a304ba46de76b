"""What Tidegate is measured against, each a process of its own: a naive loop, and a publisher that reads no log."""
