"""The production bridge under a virtual clock, against an in-memory log and broker."""
