import json
import pathlib

import pytest

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[1] / "notebooks"


# Jupyter runs a notebook in its directory; a copy of it may be anywhere.
@pytest.mark.parametrize("elsewhere", [False, True], ids=["own-directory", "empty-directory"])
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, elsewhere, monkeypatch, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    import nbformat

    monkeypatch.setenv("FLOWS", "60")
    notebook = nbformat.read(path, as_version=4)
    directory = tmp_path if elsewhere else NOTEBOOKS
    resources = {"metadata": {"path": directory}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert all(output["output_type"] != "error" for output in outputs)
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"image/png", "text/html"} <= kinds
