"""Run the notebooks of the documentation and keep what they show: ``make notebooks``.

What changes from run to run without saying anything (times of execution, versions of Python) is
left out, so that a second run changes only what the code shows.
"""

import base64
import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
COLOURS = 64
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def run(path: Path) -> None:
    """Execute one notebook in place."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:  # what a notebook writes
        settings = {"timeout": 600, "kernel_name": "python3", "coalesce_streams": True}
        NotebookClient(notebook, resources={"metadata": {"path": folder}}, **settings).execute()
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).clear()
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = smaller(output.data["image/png"])
    nbformat.write(notebook, path)


def smaller(picture: str) -> str:
    """Return a picture with 64 colours, which is enough for lines and takes a third of the room."""
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize(COLOURS)
    stream = io.BytesIO()
    image.save(stream, "png", optimize=True)
    return base64.b64encode(stream.getvalue()).decode()


if __name__ == "__main__":
    chosen = [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb"))
    for path in chosen:
        run(path)
        print(path.relative_to(FOLDER.parents[1]))
