"""Tables and figures of five papers: published data, predictions, and the same studies measured here."""
