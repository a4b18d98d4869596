"""Machine learning on sparse data, on all cores."""

from os import PathLike
from typing import Any, Callable, Iterable, Literal, Mapping, NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self

__version__: str

# A matrix of SciPy or NumPy, a data frame, or a path.
Input = Any
Callback = Callable[[dict[str, Any]], bool | None]
Path = str | PathLike[str]

class NotFittedError(ValueError, AttributeError): ...

class Report(dict[str, Any]):
    @classmethod
    def read(cls, text: str) -> Report: ...
    def curve(self) -> tuple[str, list[int], list[float]]: ...
    def _repr_html_(self) -> str: ...

class Ranks(NamedTuple):
    ids: NDArray[Any]
    scores: NDArray[np.float32]

class _Estimator:
    n_iter_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    report_: Report
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...
    def save(self, directory: Path) -> None: ...
    @classmethod
    def load(cls, directory: Path) -> Self: ...

class SparseLogisticRegression(_Estimator):
    coef_: NDArray[np.float64]
    l1_: float
    path_: list[dict[str, float]]
    calibration_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    classes_: NDArray[Any]
    def __init__(
        self,
        l1: float | Sequence[float] | Literal["path"] = 1.0,
        *,
        l2: float = 0.0,
        fit_intercept: bool = True,
        multinomial: bool = False,
        normalize: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        holdout: float | None = None,
        patience: int | None = None,
        max_iter: int = 2000,
        tol: float = 1e-6,
        tune: bool | Mapping[str, Any] = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None: ...
    def fit(
        self,
        X: Input,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
        **reading: Any,
    ) -> Self: ...
    def decision_function(self, X: Input) -> NDArray[np.float64]: ...
    def predict_proba(self, X: Input) -> NDArray[np.float64]: ...
    def predict_log_proba(self, X: Input) -> NDArray[np.float64]: ...
    def predict(self, X: Input) -> NDArray[Any]: ...
    def score(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float: ...

class TopicModel(_Estimator):
    alpha_: NDArray[np.float32]
    coherence_: float
    @property
    def components_(self) -> NDArray[np.float64]: ...
    def __init__(
        self,
        n_components: int = 100,
        *,
        alpha: float | str | None = None,
        beta: float = 0.01,
        prior: str = "symmetric",
        sampler: str = "auto",
        extra_topics: int = 0,
        holdout: float | None = None,
        patience: int | None = None,
        max_iter: int = 200,
        tol: float = 0.0,
        tune: bool | Mapping[str, Any] = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None: ...
    def fit(self, X: Input, y: Any = None, *, callback: Callback | None = None, **reading: Any) -> Self: ...
    def transform(self, X: Input) -> NDArray[np.float32]: ...
    def fit_transform(self, X: Input, y: Any = None, **fit_params: Any) -> NDArray[np.float32]: ...
    def perplexity(self, X: Input) -> float: ...
    def score(self, X: Input, y: Any = None) -> float: ...
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]: ...
    def set_output(self, *, transform: str | None = None) -> Self: ...
    def top_words(self, n: int = 10) -> list[list[Any]]: ...
    def save_page(self, path: Path, name: str = "the model") -> None: ...

class _Factors(_Estimator):
    user_factors_: NDArray[np.float32]
    item_factors_: NDArray[np.float32]
    user_biases_: NDArray[np.float32]
    item_biases_: NDArray[np.float32]
    user_ids_: NDArray[Any]
    item_ids_: NDArray[Any]
    mean_: float
    unit_: float
    range_: tuple[float, float] | None
    def predict_pairs(self, users: ArrayLike, items: ArrayLike, *, clip: bool = True) -> NDArray[np.float32]: ...
    def fold_in(self, X: Any) -> Self: ...
    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        without: ArrayLike | Iterable[Any] | None = (),
        exclude: Input = None,
        clip: bool = True,
    ) -> tuple[NDArray[Any], NDArray[np.float32]]: ...
    def similar_items(self, items: Any = None, n: int = 10) -> tuple[NDArray[Any], NDArray[np.float32]]: ...
    def similar_users(self, users: Any = None, n: int = 10) -> tuple[NDArray[Any], NDArray[np.float32]]: ...

class MatrixFactorization(_Factors):
    def __init__(
        self,
        n_factors: int = 32,
        *,
        reg: float | None = None,
        optimizer: str = "adagrad",
        step: float | None = None,
        unit: float | None = None,
        biases: bool = True,
        mean: bool = True,
        holdout: float | None = None,
        patience: int | None = None,
        max_iter: int = 20,
        tol: float = 0.0,
        tune: bool | Mapping[str, Any] = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None: ...
    def fit(self, X: Input, y: Any = None, *, callback: Callback | None = None, **reading: Any) -> Self: ...
    def score(self, X: Input, y: Any = None) -> float: ...

class ImplicitALS(_Factors):
    def __init__(
        self,
        n_factors: int = 32,
        *,
        block: int = 16,
        reg: float = 0.003,
        alpha: float | None = None,
        nu: float = 1.0,
        ratings_above: float | None = None,
        half_life: float | str | None = None,
        holdout: float | None = None,
        holdout_per_user: int | float | None = None,
        holdout_last: int | float | None = None,
        holdout_users: int | float | None = None,
        ranking: int | None = None,
        patience: int | None = None,
        max_iter: int = 16,
        tol: float = 0.0,
        tune: bool | Mapping[str, Any] = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None: ...
    def fit(self, X: Input, y: Any = None, *, callback: Callback | None = None, **reading: Any) -> Self: ...

def pagerank(
    graph: Input,
    *,
    damping: float = 0.85,
    weights: bool | str = False,
    undirected: bool = False,
    personalization: Mapping[Any, float] | ArrayLike | list[Mapping[Any, float] | ArrayLike] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> Any: ...
def hits(
    graph: Input,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> tuple[Any, Any]: ...
