"""Stubs say what the package has."""

import ast
import inspect
from pathlib import Path

import pytest

import megagrid

TREE = ast.parse(Path(megagrid.__file__).with_name("__init__.pyi").read_text())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = [node for node in TREE.body if isinstance(node, ast.FunctionDef)]
METHODS = [
    (name, one)
    for name in ("SparseLogisticRegression", "TopicModel", "MatrixFactorization", "ImplicitALS", "_Factors", "_Estimator")
    for one in CLASSES[name].body
    if isinstance(one, ast.FunctionDef) and not one.decorator_list
]


def of_stub(node):
    """Return parameters, with whether they have names only and their defaults as text."""
    given = node.args
    places = [(one.arg, False) for one in given.args if one.arg != "self"]
    defaults = [None] * (len(places) - len(given.defaults)) + given.defaults
    defaults += given.kw_defaults
    named = [(one.arg, True) for one in given.kwonlyargs]
    return [(*one, None if value is None else ast.literal_eval(value)) for one, value in zip(places + named, defaults)]


def of_package(function):
    kinds = inspect.Parameter
    found = [one for name, one in inspect.signature(function).parameters.items() if name != "self"]
    found = [one for one in found if one.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    return [(one.name, one.kind is kinds.KEYWORD_ONLY, None if one.default is kinds.empty else one.default) for one in found]


@pytest.mark.parametrize("name, node", METHODS, ids=lambda one: getattr(one, "name", one))
def test_methods_have_the_parameters_of_their_stubs(name, node):
    owner = megagrid.MatrixFactorization if name[0] == "_" else getattr(megagrid, name)
    if node.name == "set_params":
        return
    if node.name == "set_output" and not hasattr(owner, node.name):
        pytest.skip("without scikit-learn")
    assert of_stub(node) == of_package(getattr(owner, node.name))


@pytest.mark.parametrize("node", FUNCTIONS, ids=lambda node: node.name)
def test_functions_have_the_parameters_of_their_stubs(node):
    assert of_stub(node) == of_package(getattr(megagrid, node.name))


def test_fits_have_the_attributes_of_their_stubs(clicks, documents, ratings):
    X, y = clicks
    for model in (
        megagrid.SparseLogisticRegression().fit(X, y),
        megagrid.TopicModel(2, max_iter=2).fit(documents),
        megagrid.MatrixFactorization(2, max_iter=2).fit(ratings),
        megagrid.ImplicitALS(2, max_iter=2).fit(ratings[:2]),
    ):
        stub = CLASSES[type(model).__name__]
        bodies = [stub.body, *(CLASSES[base.id].body for base in stub.bases if getattr(base, "id", "") == "_Factors")]
        attributes = [one for body in bodies for one in body if isinstance(one, ast.AnnAssign)]
        known = {one.target.id for one in attributes}
        assert all(hasattr(model, name) for name in known)
        own = {name for name in vars(model) if name[0] != "_" and name[-1] == "_"}
        assert own - known <= {"n_iter_", "n_features_in_", "feature_names_in_", "report_"}
