r"""`tidegate report` by `spark-submit`; the wheel comes with it, so nothing of Tidegate is installed on the cluster.

spark-submit --master spark://HOST:7077 --packages org.apache.hadoop:hadoop-aws:3.5.0 --py-files tidegate-VERSION.whl \
    report_on_cluster.py s3a://bucket/logs --out s3a://bucket/report
"""

import sys

from proxy.reports.command import main

sys.exit(main(sys.argv[1:]))
