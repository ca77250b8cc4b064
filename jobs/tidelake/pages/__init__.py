"""Quality pages: all feeds, a feed, an hour, a table. They are rendered from documents of the lake, for Airflow and as files."""
