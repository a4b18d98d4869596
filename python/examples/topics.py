"""Topics of sentences from a data frame of words, and of a text file: python topics.py"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from megagrid import TopicModel

themes = {
    "kitchen": "bread salt butter oven knife flour onion soup plate stew".split(),
    "harbour": "ship anchor rope tide sail deck gull pier storm crew".split(),
    "orchestra": "violin drum score tempo flute chord stage cello choir bow".split(),
}
random = np.random.default_rng(2)
documents = [random.choice(themes[name], 12).tolist() for name in random.choice(list(themes), 600)]

# A column for each word: how often it is in a document.
words = sorted(set(sum(documents, [])))
counts = pd.DataFrame([[document.count(word) for word in words] for document in documents], columns=words)
model = TopicModel(3, max_iter=60).fit(counts)
for topic in model.top_words(5):
    print(*topic)
assert {tuple(sorted(topic)) for topic in model.top_words(10)} == {tuple(sorted(words)) for words in themes.values()}
print(f"perplexity {model.perplexity(counts):.1f}: about ten words are as likely each")

# The same from a text with a document a line.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "sentences.txt"
    path.write_text("".join(" ".join(document) + ".\n" for document in documents))
    of_text = TopicModel(3, max_iter=60).fit(path, format="text", split="punctuation", lower_case=True)
    new = Path(folder) / "new.txt"
    new.write_text("The gull sat on the pier, on a rope of the ship.\n")
    mixture = of_text.transform(new)[0]
print("a gull on a pier:", of_text.top_words(4)[int(mixture.argmax())], f"{mixture.max():.2f}")
assert set(of_text.top_words(4)[int(mixture.argmax())]) <= set(themes["harbour"])
