"""Brings a data set into the text that Megagrid and its peers both read.

usage: prepare.py words IN OUT    UCI bag of words, without the words that do not occur
       prepare.py terms IN OUT    LDA-C, likewise, as a UCI bag of words
       prepare.py unit IN OUT     LIBSVM text, rows scaled to length 1: labels 1 to 10 against the rest
       prepare.py unpack IN OUT   as it is

IN may end in .gz. tomotopy's vocabulary is the words that occur, and the size of the vocabulary is part of the joint
likelihood: so there must be no others.
"""
import gzip
import math
import shutil
import sys


def main():
    action, source, target = sys.argv[1:4]
    with open(target, "w") as out:
        {"words": words, "terms": terms, "unit": unit, "unpack": unpack}[action](source, out)


def read(path):
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path)


def words(source, out):
    """Numbers the words that occur from 1, in their order; documents stay as they are."""
    with read(source) as lines:
        documents, _, entries = (next(lines).strip() for _ in range(3))
        used = sorted({int(line.split()[1]) for line in lines})
    numbers = {str(word): number for number, word in enumerate(used, 1)}
    out.write(f"{documents}\n{len(used)}\n{entries}\n")
    with read(source) as lines:
        for _ in range(3):
            next(lines)
        for line in lines:
            document, word, count = line.split()
            out.write(f"{document} {numbers[word]} {count}\n")


def terms(source, out):
    """Its terms count from 0, and may have no document."""
    with read(source) as lines:
        documents = [[pair.split(":") for pair in line.split()[1:]] for line in lines]
    used = sorted({int(term) for pairs in documents for term, _ in pairs})
    numbers = {term: number for number, term in enumerate(used, 1)}
    out.write(f"{len(documents)}\n{len(used)}\n{sum(map(len, documents))}\n")
    for document, pairs in enumerate(documents, 1):
        out.writelines(f"{document} {numbers[int(term)]} {count}\n" for term, count in pairs)


def unit(source, out):
    """Nine significant digits hold an f32 exactly."""
    with read(source) as lines:
        for line in lines:
            label, *features = line.split()
            pairs = [feature.split(":") for feature in features]
            length = math.sqrt(sum(float(value) ** 2 for _, value in pairs)) or 1.0
            row = " ".join(f"{index}:{float(value) / length:.9g}" for index, value in pairs)
            out.write(f"{'+1' if 1 <= float(label) <= 10 else '-1'} {row}\n")


def unpack(source, out):
    with read(source) as lines:
        shutil.copyfileobj(lines, out)


if __name__ == "__main__":
    main()
