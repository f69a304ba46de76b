"""Batch analysis of metric logs with PySpark; stands alone: it knows the bridge only by its records.

command ─► session ─► records (schema) ─► one module per report ─► result ─► page, charts, terminal
                                          overview  traffic  latency (buckets)  episodes
                                          incidents  proof  timeline  cross_checks
"""
