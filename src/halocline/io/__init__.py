"""What leaves a run: pictures of fields."""
