"""A stretch of conversation in fewer bytes, in its own words: `lines.digest`. Pure, without a model."""
