"""Scans a table through a client of Spark Connect, in a process of its own: run by test_scan_spark.py."""

import json
import os
import sys

import windrow

os.environ["PYSPARK_PYTHON"] = sys.executable


def main(lake):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    with windrow.connect(lake) as opened:
        table = opened.table("metrics")
        native = table.scan("value > 0", ["host", "value"]).to_spark(spark).count()
        tasks = table.scan("value * 1 > 0").to_spark(spark).count()
        source = spark.read.format("windrow").option("table", "metrics").load(lake).where("value > 0").count()
        table.scan().to_spark(spark).createOrReplaceTempView("m")
        query = "select count(*) as n from m where value > 0"
        [row] = opened.spark_sql(spark, query, {"m": "metrics"}).collect()
    print(json.dumps({"native": native, "tasks": tasks, "source": source, "sql": row.n}), flush=True)
    os._exit(0)  # what Connect does at its end is noise


main(sys.argv[1])
