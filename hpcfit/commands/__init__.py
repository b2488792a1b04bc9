"""One file a verb: from arguments to a study to a file or a page; no mathematics."""
