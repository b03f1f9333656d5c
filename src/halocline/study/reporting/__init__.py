"""Tables, plots and HTML pages of measurements."""
