"""Tables and figures of five papers: published data, predictions, and the same studies on this machine."""
