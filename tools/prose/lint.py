"""Check the text of the project: prose, docstrings, comments, messages and names.

    lint.py [PATH ...]

Each finding is one line, `file:line: rule: text`. The exit status is 1 if there are findings. Without
paths, all files of the project are checked.

Rules:

- sentence: a sentence has at most 25 words. A code span, a number or a placeholder counts as one word.
- phrase: text contains none of the phrases in `banned_phrases.txt`.
- name: code binds none of the names in `banned_names.txt`.
- docstring: the first word of a docstring is none of those in FIRST_WORDS, and its first line ends with
  a full stop.
- heading: a page has one title, on its first line; levels are not skipped; a heading has no full stop.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LONGEST_SENTENCE = 25
FIRST_WORDS = {
    "What",
    "How",
    "Whether",
    "Of",
    "As",
    "To",
    "After",
    "Where",
    "Which",
    "Who",
    "Whose",
    "Why",
    "The same",
}
# Lines of code, headings and comments. Commands are lines of code in the sections Examples of docstrings.
NO_PROSE = (">>>", "...", "#", "<!--", ".. ", "halocline ", "mpiexec ")
FOLDERS = ("src", "native", "docs", "examples", "benchmarks", "tools", "tests", "packaging")
# The text of this page comes from the help texts in the source; the folder holds records, which are data.
LEFT_OUT = ("docs/reference/command.md", "docs/verification/")

Finding = tuple[int, str, str]  # line, rule, text


def banned(name: str) -> list[str]:
    """Return the entries of a list of banned words, without comments."""
    lines = (HERE / name).read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


PHRASES = [
    (
        phrase,
        re.compile(r"(?<![\w-])" + r"\s+".join(map(re.escape, phrase.split())) + r"(?![\w-])", re.IGNORECASE),
    )
    for phrase in banned("banned_phrases.txt")
]
NAMES = set(banned("banned_names.txt"))
PUBLIC = ("where",)  # functions of the language with the name of a function of NumPy

ABBREVIATION = re.compile(
    r"\b(e\.g|i\.e|cf|al|Sec|Sect|Eq|Eqs|Fig|Figs|Ref|Refs|No|vs|approx|resp|Vol|pp|etc|Dr|St)\.(?=\s)"
)
SENTENCE_END = re.compile(r"(?<=[.!?:;])[)\"'*_]*\s+")
FORMULA = re.compile(r"\S*[=<>^|+*/\\]\S*")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph. A colon or semicolon ends one too."""
    text = ABBREVIATION.sub(lambda match: match.group().replace(".", "\0"), text)
    yield from filter(None, SENTENCE_END.split(" ".join(text.split())))


def word_count(sentence: str) -> int:
    """Return the number of words; formulas do not count."""
    plain = re.sub(r"\([^()]*\)", " ", FORMULA.sub(" ", sentence))
    return len(re.findall(r"[^\W\d_][\w'-]*", plain))


def check_prose(text: str, line: int) -> Iterator[Finding]:
    """Yield the findings of the rules `sentence` and `phrase` in one paragraph that begins at a line."""
    bare = re.sub(r"``?[^`]*``?", " code ", text)
    for sentence in sentences(bare):
        count = word_count(sentence)
        if count > LONGEST_SENTENCE:
            yield line, "sentence", f"{count} words: {sentence.replace(chr(0), '.')}"
    for phrase, pattern in PHRASES:
        if pattern.search(bare):
            yield line, "phrase", phrase


def paragraphs(lines: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of Markdown or of a docstring as pairs of first line and text.

    List items and table cells are paragraphs of their own. Code, formulas and tables of doctest are left out.
    """
    fence: str | None = None
    part: list[str] = []
    begin = first
    for number, raw in enumerate([*lines, ""], first):
        line = raw.strip()
        if fence is not None:
            fence = None if line == fence else fence
            line = ""
        elif line.startswith(("```", "$$")):
            fence = line[: 3 if line[0] == "`" else 2] if line in ("$$",) or line[0] == "`" else None
            line = ""
        item = re.match(r"([-*]|\d+\.) ", line)
        if part and (not line or item or line[0] in "|#" or set(line) <= set("-=")):
            yield begin, " ".join(part)
            part = []
        if not line or set(line) <= set("-=|: ") or line.startswith(NO_PROSE):
            continue
        if line[0] == "|":
            for cell in line.strip("|").split("|"):
                yield number, re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)
            continue
        if not part:
            begin = number
        part.append(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line[item.end() :] if item else line))


def check_page(path: Path) -> Iterator[Finding]:
    """Yield the findings of a Markdown file."""
    lines = path.read_text().splitlines()
    level = 0
    fenced = False
    for number, line in enumerate(lines, 1):
        fenced ^= line.startswith("```")
        match = None if fenced else re.match(r"(#+) (.*)", line)
        if match is None:
            continue
        depth = len(match[1])
        if (depth == 1) != (number == 1):
            yield number, "heading", "a page has one title, on its first line"
        elif depth > level + 1:
            yield number, "heading", f"level {depth} follows level {level}"
        if match[2].endswith((".", ":", ",")):
            yield number, "heading", f"ends with punctuation: {match[2]}"
        level = depth
    for number, text in paragraphs(lines, 1):
        yield from check_prose(text, number)


def check_docstring(text: str, line: int) -> Iterator[Finding]:
    """Yield the findings of a docstring that begins at a line."""
    first, _, _ = text.partition("\n")
    for word in FIRST_WORDS:
        if re.match(rf"{word}\b", first):
            yield line, "docstring", f"begins with {word}: {first}"
    if not first.rstrip().endswith((".", "?", "!")) and "\n\n" in text:
        yield line, "docstring", f"first line has no full stop: {first}"
    for number, paragraph in paragraphs(text.splitlines(), line):
        yield from check_prose(paragraph, number)


def is_prose(text: str) -> bool:
    """Return True if a string of code is a sentence or phrase for people, and no code or data."""
    words = re.findall(r"[A-Za-z][a-z]+", text)
    return (
        len(words) >= 4
        and ("." in text or len(words) <= 40)
        and not re.search(r"[;{}]\s*$|^\s*#|\w\(\w*\);|::|->", text, re.MULTILINE)
        and not is_python(text)
    )


def is_python(text: str) -> bool:
    """Return True if a text has Python statements other than expressions."""
    try:
        body = ast.parse(textwrap.dedent(text)).body
    except (SyntaxError, ValueError):
        return False
    return not all(isinstance(statement, ast.Expr) for statement in body)


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string literal; a placeholder reads as the word `value`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "value" for part in node.values)
    return None


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable, argument, attribute, function and class that code binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name not in PUBLIC:
                yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def check_module(path: Path) -> Iterator[Finding]:
    """Yield the findings of a Python file."""
    source = path.read_text()
    tree = ast.parse(source)
    documented = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                literal = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                    documented.add(literal)
                    yield from check_docstring(literal.value, literal.lineno)
    inner = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        text = text_of(node)
        if text is None or node in documented or (node in inner and not isinstance(node, ast.JoinedStr)):
            continue
        if is_prose(text):
            for number, paragraph in paragraphs(text.splitlines(), node.lineno):
                yield from check_prose(paragraph, number)
    for number, name in bound_names(tree):
        if name.strip("_") in NAMES:
            yield number, "name", name
    comments = [
        (token.start[0], token.string.lstrip("#!: "), bool(token.line[: token.start[1]].strip()))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from check_comments(comments)


def check_comments(comments: list[tuple[int, str, bool]]) -> Iterator[Finding]:
    """Yield the findings of comments (line, text, True after code).

    Comments on adjacent lines without code are one text. A comment after code is a text of its own.
    """
    block: list[str] = []
    begin = previous = 0
    for number, text, after_code in [*comments, (-1, "", True)]:
        if block and (number != previous + 1 or after_code):
            for line, paragraph in paragraphs(block, begin):
                yield from check_prose(paragraph, line)
            block = []
        if after_code:
            yield from check_prose(text, number)
            continue
        if not block:
            begin = number
        block.append(text)
        previous = number


def check_native(path: Path) -> Iterator[Finding]:
    """Yield the findings of a C++ file: its comments, messages and names."""
    comments = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code, slashes, comment = line.partition("//")
        if slashes and code.count('"') % 2 == 0:
            comments.append((number, comment.lstrip("/!< "), bool(code.strip())))
        else:
            code = line
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code):
            if is_prose(text):
                for _, rule, message in check_prose(text, number):
                    yield number, rule, message
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", code)
        for name in re.findall(
            r"(?:auto|int|bool|double|size_t|int64_t|[\w:>]+[&*]?) &?\*?(\w+)(?= =|\{|;|,|\)|\[| :)", bare
        ):
            if name.strip("_") in NAMES:
                yield number, "name", name
    yield from check_comments(comments)


def check(path: Path) -> Iterator[Finding]:
    """Yield the findings of one file, by its kind."""
    if path.suffix == ".md":
        yield from check_page(path)
    elif path.suffix == ".py":
        yield from check_module(path)
    elif path.suffix in (".cpp", ".hpp", ".h"):
        yield from check_native(path)


def project_files() -> Iterator[Path]:
    """Yield all files of the project that are checked."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            is_text = path.suffix in (".md", ".py", ".cpp", ".hpp", ".h") and "data" not in path.parts
            if is_text and not str(path.relative_to(ROOT)).startswith(LEFT_OUT):
                yield path


def main(arguments: list[str]) -> int:
    """Print the findings of the named files and folders, or of the project, and return the exit status."""
    count = 0
    chosen = [Path(argument).resolve() for argument in arguments]
    for path in project_files():
        if chosen and not any(path == other or other in path.parents for other in chosen):
            continue
        for line, rule, text in sorted(check(path)):
            print(f"{path.relative_to(ROOT)}:{line}: {rule}: {text}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
