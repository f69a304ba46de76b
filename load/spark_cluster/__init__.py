"""A Spark cluster and an S3 of one's own, on this machine: what a report on a cluster is tried with.

`python -m load.spark_cluster -- COMMAND`, in Python `SparkCluster`.
"""

from load.spark_cluster.cluster import SparkCluster

__all__ = ["SparkCluster"]
