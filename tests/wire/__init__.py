"""Adversaries that speak the protocol: an in-memory network under the virtual clock, and scripted brokers on it.

The clients inside (aiokafka, aiormq) run unchanged and meet real bytes. See docs/design/0016-wire-histories.md.
"""
