"""Avro schemas: the contract as files, the codec, the decoder, and the schema registry."""
