"""The record of a run."""

import html
import json


class Report(dict):
    """The record of a run, as the command writes it with ``--json``; in a notebook it shows how the run converged.

    Keys are ``config`` (every resolved option), ``input``, ``machine``, ``phases`` (seconds), ``iterations`` and ``result``, and of a fit
    that was tuned ``tuning``: every trial, and the settings of the run.
    """

    @classmethod
    def read(cls, text):
        """Read a record from JSON."""
        return cls(json.loads(text))

    def curve(self):
        """Return the name of what was measured most often, its iterations and its values."""
        found = {}
        for one in self["iterations"]:
            measured = dict(one["metrics"])
            if one["objective"] is not None:
                measured["objective"] = one["objective"]
            for name, value in measured.items():
                found.setdefault(name, []).append((one["iteration"], value))
        if not found:
            return "", [], []
        name = max(found, key=lambda name: (len(found[name]), name.startswith("test_")))
        return (name, *map(list, zip(*found[name])))

    def __repr__(self):
        result, sizes = self["result"], self["input"]
        found = ", ".join(f"{name} {value:.4g}" for name, value in result["metrics"].items())
        tuning = self.get("tuning")
        tuned = "" if tuning is None else f", tuned by {len(tuning['trials'])} trials: {tuning['settings'][-1][1]}"
        return (
            f"<{self['command']}: {sizes['left']} × {sizes['right']} vertices, {sizes['edges']} edges, "
            f"{result['iterations']} iterations in {self['phases']['train']:.3g} s (ended by {result['ended_by']}){tuned}; {found}>"
        )

    def _repr_html_(self):
        return f"<div><code>{html.escape(repr(self))}</code>{_plot(*self.curve())}</div>"


def _plot(name, at, values, width=480, height=160):
    """Draw a curve as SVG."""
    if len(at) < 2:
        return ""
    low, high = min(values), max(values)
    across, up = (at[-1] - at[0]) or 1, (high - low) or 1
    points = " ".join(
        f"{40 + (width - 60) * (x - at[0]) / across:.1f},{height - 30 - (height - 50) * (y - low) / up:.1f}"
        for x, y in zip(at, values)
    )
    text = f'fill="currentColor" font-size="11" font-family="sans-serif"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
        f'<text x="40" y="12" {text}>{html.escape(name)}, {high:.4g} to {low:.4g}</text>'
        f'<polyline points="{points}" fill="none" stroke="#2a78d0" stroke-width="2"/>'
        f'<line x1="40" x2="{width - 20}" y1="{height - 24}" y2="{height - 24}" stroke="currentColor" stroke-width="0.5"/>'
        f'<text x="40" y="{height - 8}" {text}>iteration {at[0]} to {at[-1]}</text></svg>'
    )
