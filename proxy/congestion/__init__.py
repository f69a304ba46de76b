"""The control loop, pure: samples in, verdicts out. Knows no event loop, no clock, no client."""
