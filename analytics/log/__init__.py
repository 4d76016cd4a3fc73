"""The commit log of the tables: typed metadata, one reader, cuts and offsets. Imports no Spark."""
