"""A collection in Milvus."""
