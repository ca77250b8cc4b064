"""The tables: Spark jobs on frames, and the catalog without a JVM. Only modules in here import pyspark or pyiceberg."""
