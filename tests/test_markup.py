"""Tables in HTML."""

from __future__ import annotations

from halocline.markup import facts_table


def test_text_of_the_user_is_escaped_and_empty_facts_are_omitted() -> None:
    html = facts_table("<b>", {"a & b": "1 < 2", "absent": ""})
    assert "&lt;b&gt;" in html
    assert "a &amp; b" in html
    assert "1 &lt; 2" in html
    assert "absent" not in html
