"""What the cluster is made of: PySpark's own Spark, and jars that Maven fetches once per user."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from load.stack import jars, packages

S3A, S3PROXY = (Path(__file__).with_name(name) for name in ("s3a.xml", "s3proxy.xml"))


@dataclass(frozen=True)
class Software:
    """Programs and jars. `spark` is Spark's home, `s3a` holds its client for S3, `s3proxy` the store."""

    java: Path
    spark: Path
    s3a: Path
    s3proxy: Path


def provide() -> Software:
    """Return everything a cluster needs, installing and fetching what is missing. Raises SetupError."""
    folders = jars.folder_of("s3a", S3A), jars.folder_of("s3proxy", S3PROXY)
    packages.install_missing(lambda: packages.missing_for(*folders))
    java, spark = packages.find_java(), importlib.util.find_spec("pyspark")
    assert java is not None, "it was missing, or is there"
    assert spark is not None, "pyspark is an extra of this project"
    assert spark.origin is not None, "it is a package of files"
    return Software(
        java=java,
        spark=Path(spark.origin).parent,
        s3a=jars.fetched("s3a", S3A, what="Spark's client for S3", megabytes=690),
        s3proxy=jars.fetched("s3proxy", S3PROXY, what="an S3", megabytes=38),
    )
