"""Pictures, films and exports of fields."""
