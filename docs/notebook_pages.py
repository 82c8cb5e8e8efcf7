"""Turns the notebooks of the documentation into pages of the site.

A notebook becomes Markdown: its text, its code, and what is kept in it of its output. So links are
checked, and pages look like the others. The notebook itself can be downloaded from its page.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

LINK = re.compile(r"\]\(((?:[\w.-]+/)*notebooks/[\w-]+)\.ipynb\)")
DOWNLOAD = "*This page is a notebook: [download it]({name}).*"


def on_files(files: Any, config: Any) -> Any:
    """Add a page and its pictures for each notebook."""
    from mkdocs.structure.files import File

    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        stem = file.src_uri.removesuffix(".ipynb")
        page, pictures = as_markdown(json.loads(file.content_string), stem.rpartition("/")[2])
        files.append(File.generated(config, f"{stem}.md", content=page))
        folder = stem.rpartition("/")[0]
        for name, content in pictures.items():
            files.append(File.generated(config, f"{folder}/{name}", content=content))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links to a notebook lead to its page; in the repository they lead to the file."""
    return LINK.sub(r"](\1.md)", markdown)


def as_markdown(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by their file names."""
    blocks: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        blocks.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            blocks += _shown(output, name, pictures)
    head, *rest = blocks[0].split("\n")  # the title
    blocks[0] = "\n".join([head, "", DOWNLOAD.format(name=f"{name}.ipynb"), "", *rest])
    return "\n\n".join(blocks) + "\n", pictures


def _shown(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """Yield what is seen of an output: a picture, a table or text."""
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(pictures) + 1}.png"
        pictures[file] = base64.b64decode("".join(data["image/png"]))
        yield f"![What the code above draws]({file})"
    elif "text/html" in data:
        yield "".join(data["text/html"])
    else:
        text = "".join(output.get("text") or data.get("text/plain", ""))
        yield f"```text\n{text.rstrip()}\n```"
