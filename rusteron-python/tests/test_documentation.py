import doctest
import inspect
from pathlib import Path

import pytest
import rusteron
from rusteron import _errors, _rusteron


def test_examples_in_docstrings_run():
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner()
    count = 0
    for module in [rusteron, _errors, _rusteron]:
        found = {test.name: test for test in finder.find(module, module.__name__)}
        for name, item in vars(module).items():
            if inspect.isclass(item):
                found.update({test.name: test for test in finder.find(item, name, module=False)})
        for test in found.values():
            test.globs = {}
            if test.examples:
                count += 1
                runner.run(test)
    assert count > 5
    assert runner.summarize().failed == 0


@pytest.mark.parametrize("page", ["rusteron-python/README.md", "docs/python.md"])
def test_examples_on_page_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / page).read_text()
    examples = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
    assert "b'hello'" in capsys.readouterr().out


def test_public_items_have_docstrings():
    for name, item in vars(rusteron).items():
        if inspect.isclass(item):
            assert item.__doc__, name
            for attribute, value in vars(item).items():
                if not attribute.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{attribute}"
