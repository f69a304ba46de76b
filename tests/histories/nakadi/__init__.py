"""Fault histories with Nakadi as the log: the production adapter, its HTTP client inside, before a scripted Nakadi.

They have a judge of their own: that of the other histories counts Kafka's offsets.
"""
