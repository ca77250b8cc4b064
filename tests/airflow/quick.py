"""Settings of a Spark application that is soon gone: one task a shuffle, no adapting, no time spent on compiling what runs once, and
room for what it makes, as Java would stop to find out how much it needs."""

QUICK_SPARK = {
    "TIDELAKE_DRIVER_MEMORY": "1g",
    "TIDELAKE_SPARK_CONF": """
spark.sql.shuffle.partitions=1
spark.sql.adaptive.enabled=false
spark.sql.codegen.wholeStage=false
spark.sql.codegen.factoryMode=NO_CODEGEN
spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Xms1g -Xmn384m -XX:MetaspaceSize=256m -Duser.timezone=UTC
""",
}
