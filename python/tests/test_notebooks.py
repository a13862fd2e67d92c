import pathlib

import pytest

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[1] / "notebooks"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    import nbformat

    monkeypatch.setenv("FLOWS", "60")
    notebook = nbformat.read(path, as_version=4)
    root = NOTEBOOKS.parents[1]
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": root}})
    client.execute()
