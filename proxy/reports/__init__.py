"""Batch analysis of metric logs with PySpark; stands alone."""
