"""Two sessions of one Spark: one makes code for its queries, the other interprets what is little."""

from pyspark.sql import SparkSession

from proxy.reports.records import planned_by
from proxy.reports.session import for_little

SETTING = "spark.sql.subexpressionElimination.enabled"
"""What the two differ in, here as elsewhere; the tests' Spark makes no code either."""


def test_what_is_little_has_a_session_of_its_own_when_it_is_asked_for_again(spark: SparkSession) -> None:
    little = for_little(spark)
    assert for_little(spark) is little
    assert (spark.conf.get(SETTING), little.conf.get(SETTING)) == ("true", "false")


def test_a_query_is_run_as_the_session_says_that_is_told_when_another_has_read_its_rows(spark: SparkSession) -> None:
    read = for_little(spark).range(3).selectExpr("id", "CASE WHEN id > 0 THEN map('a', id) END AS counts")
    planned = planned_by(spark, read)
    assert planned.sparkSession is spark
    # The session of Java's own that plans it, not only the one that Python says.
    assert planned._jdf.sparkSession().equals(spark._jsparkSession)
    assert planned.orderBy("id").collect() == read.orderBy("id").collect()
    assert planned.dtypes == read.dtypes


def test_names_of_java_are_asked_for_once_when_a_report_runs(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    assert jvm.PythonUtils is jvm.PythonUtils
    assert jvm.functions.lit is jvm.functions.lit
