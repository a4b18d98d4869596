"""What is taken of scikit-learn where it is installed, and what stands in for it where it is not."""

import inspect

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
except ImportError:

    class NotFittedError(ValueError, AttributeError):
        """An estimator is used before `fit`."""

    class ConvergenceWarning(UserWarning):
        """A fit ended before it converged."""

    class DataConversionWarning(UserWarning):
        """Data are not of the shape that was expected, and are taken as if they were."""

    class BaseEstimator:
        """Parameters as scikit-learn has them: those of the constructor, kept under their names."""

        @classmethod
        def _get_param_names(cls):
            return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

        def get_params(self, deep=True):
            """Return all parameters by name."""
            return {name: getattr(self, name) for name in self._get_param_names()}

        def set_params(self, **params):
            """Set parameters by name."""
            for name, value in params.items():
                if name not in self._get_param_names():
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}.")
                setattr(self, name, value)
            return self

        def __repr__(self):
            fresh = type(self)()
            given = {name: value for name, value in self.get_params().items() if value is not getattr(fresh, name)}
            given = {name: value for name, value in given.items() if value != getattr(fresh, name)}
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    class ClassifierMixin:
        """A classifier's score."""

        def score(self, X, y, sample_weight=None):
            """Return the part of the samples whose class is predicted."""
            import numpy as np

            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    class TransformerMixin:
        """A transformer's `fit_transform`."""

        def fit_transform(self, X, y=None, **fit_params):
            """Fit, then transform."""
            return self.fit(X, y, **fit_params).transform(X)

    class ClassNamePrefixFeaturesOutMixin:
        """Names of what a transformer makes."""

        def get_feature_names_out(self, input_features=None):
            """Return the names: of the class, with numbers."""
            import numpy as np

            name = type(self).__name__.lower()
            return np.array([f"{name}{number}" for number in range(self._n_features_out)], dtype=object)


__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "TransformerMixin",
    "ConvergenceWarning",
    "DataConversionWarning",
    "NotFittedError",
]
