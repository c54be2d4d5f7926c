"""A collection in PostgreSQL with pgvector."""
