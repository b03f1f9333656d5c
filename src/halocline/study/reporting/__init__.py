"""Tables, plots and pages of measurements."""
