"""Tables of records."""

from __future__ import annotations

from halocline.io.table import Table, table_of


def test_a_table_has_a_row_for_each_record_and_a_column_for_each_function() -> None:
    columns = {"name": lambda record: record[0], "twice": lambda record: f"{2 * record[1]}"}
    table = table_of("Title", [("a", 1), ("b", 20)], columns, left=1, note="so")
    assert table == Table("Title", ("name", "twice"), (("a", "2"), ("b", "40")), left=1, note="so")
