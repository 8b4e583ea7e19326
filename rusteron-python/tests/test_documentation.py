import ast
import doctest
import inspect
from pathlib import Path

import pytest
import rusteron
from rusteron import _errors, _rusteron

STUBS = Path(rusteron.__file__).with_name("__init__.pyi")


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
def test_examples_on_page_run(page, capsys):
    text = (Path(__file__).parents[2] / page).read_text()
    examples = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
    assert "b'hello'" in capsys.readouterr().out


def public_names(item):
    kept = {"__len__", "__getitem__", "__contains__", "__iter__", "__next__", "__aiter__", "__bytes__",
            "__enter__", "__exit__", "__hash__", "__eq__", "__str__"}
    return {name for name in vars(item) if not name.startswith("_") or name in kept}


def test_stubs_name_what_exists():
    module = ast.parse(STUBS.read_text())
    stubs = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    del stubs["_Scoped"]
    classes = {name: item for name, item in vars(rusteron).items() if inspect.isclass(item)}
    assert stubs.keys() == classes.keys()
    for name, item in classes.items():
        if not issubclass(item, (Exception, int, bytes)):
            body = stubs[name].body
            named = {node.name for node in body if isinstance(node, ast.FunctionDef)}
            named |= {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
            plain = {it for it in named if not it.startswith("_")}
            assert plain == {it for it in public_names(item) if not it.startswith("_")}, name
            assert {it for it in public_names(item) if it in {"__len__", "__iter__", "__aiter__"}} <= named, name


def test_public_items_have_docstrings():
    for name, item in vars(rusteron).items():
        if inspect.isclass(item):
            assert item.__doc__, name
            for attribute in public_names(item):
                value = inspect.getattr_static(item, attribute)
                if not attribute.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{attribute}"
