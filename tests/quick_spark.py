"""Settings of a Spark application that is soon gone: one task a shuffle, no adapting, no time spent on compiling what runs once."""

ROOM = "-Xms1g -Xmn384m -XX:MetaspaceSize=256m"  # a JVM that begins with less collects garbage to find out: a tenth of its work
_JAVA = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m {ROOM} -Duser.timezone=UTC"
QUICK_SPARK = {
    "TIDELAKE_DRIVER_MEMORY": "1g",
    "TIDELAKE_SPARK_CONF": f"""
spark.sql.shuffle.partitions=1
spark.sql.adaptive.enabled=false
spark.sql.codegen.wholeStage=false
spark.sql.codegen.factoryMode=NO_CODEGEN
spark.driver.extraJavaOptions={_JAVA}
""",
}
