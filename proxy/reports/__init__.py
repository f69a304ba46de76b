"""Batch analysis of metric logs with PySpark; stands alone: it knows the bridge only by its records.

command ─► session ─► records (schema) ─► one module per report ─► result ─► page, charts, terminal
                                          overview  traffic  latency (buckets)  episodes
                                          incidents  proof  timeline  cross_checks

Files and folders, on a disk or in an object store, are asked for by `places`.
"""
