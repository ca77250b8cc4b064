"""Binary messages: Avro, Canal's protobuf and Craft, scanned column by column."""
