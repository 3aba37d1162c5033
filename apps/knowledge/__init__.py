"""Knowledge: articles, chunking, ranking, resident index, embeddings."""
