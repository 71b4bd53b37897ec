"""From where a kernel's operands come, and where its results go: the memory plan of the compiler (`o3c --dump-dir`, stage plan)
says which parts of the arena kernels share, and a run after another passes all of it and all weights through the caches.

Caches are taken as lists of pages of which the one that was used last is kept longest. What a kernel reads or writes is
served by the first cache that has it; a result is written to memory that something else was in, and comes from there, too.
"""

import collections
import math
import os
import re
import subprocess
import tempfile

from bench_networks import BUILD

PAGE = 4096
VALUE = re.compile(r"%[\w#]+")
VIEW = re.compile(r"(%\w+) = memref\.view .*\{o3\.plan = \{bytes = (\d+) .*?offset = (\d+) ")
ALIAS = re.compile(r"(%\w+) = memref\.(?:collapse_shape|expand_shape|subview|cast|reinterpret_cast) (%\w+)")
CALL = re.compile(r"call @(\w+)\((.*?)\) : \((.*?)\) -> \(\)")
MEMREF = re.compile(r"memref<((?:\d+x)*)([a-z]+)(\d+)")
PASSES = 2  # the first one fills the caches


def plan_of(path, level, target):
    """The text of the plan stage."""
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.join(BUILD, "bin", "o3c"), path, f"-O{level}", "--target", target, "--dump-dir", folder,
                   "--stop-after", "plan"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise SystemExit(f"compare_cpu: {' '.join(command)}: {ended.stderr.strip()}")
        with open(os.path.join(folder, next(name for name in os.listdir(folder) if name.endswith("-plan.mlir"))),
                  encoding="utf-8") as file:
            return file.read()


def bytes_of(memref):
    match = MEMREF.match(memref)
    return math.prod(int(size) for size in match[1].split("x") if size) * int(match[3]) // 8 if match else 0


def pages_of(where, first, size):
    """{page: bytes of it} of |size| bytes at |first|."""
    return {(where, page): min(first + size, (page + 1) * PAGE) - max(first, page * PAGE)
            for page in range(first // PAGE, -(-(first + size) // PAGE))}


def all_pages(operands):
    """Of several operands; what two have of a page adds up."""
    found = collections.Counter()
    for pages in operands:
        found.update(pages)
    return {page: min(size, PAGE) for page, size in found.items()}


def touches(text):
    """[(kernel, {page: bytes})] in the order of @main; ops that are no calls of kernels have no name."""
    places, found = {}, []
    start = text.index("func.func @main")
    for line in text[start:text.index("\n  }", start)].split("\n"):
        if view := VIEW.search(line):
            places[view[1]] = pages_of("arena", int(view[3]), int(view[2]))
        elif (alias := ALIAS.search(line)) and alias[2] in places:
            places[alias[1]] = places[alias[2]]
        elif call := CALL.search(line):
            operands = zip(VALUE.findall(call[2]), re.findall(r"memref<[^>]*>|\w+", call[3]))
            found.append((call[1], all_pages(places.get(name) or pages_of(name, 0, bytes_of(memref)) for name, memref in operands)))
        elif "ins(" in line:
            found.append((None, all_pages(places.get(name, {}) for name in VALUE.findall(line))))
    return found


class Cache:
    def __init__(self, size):
        self.room, self.pages = size // PAGE, collections.OrderedDict()

    def use(self, page):
        """Whether it was there."""
        found = page in self.pages
        self.pages[page] = None
        self.pages.move_to_end(page)
        if len(self.pages) > self.room:
            self.pages.popitem(last=False)
        return found


def served(kernels, sizes):
    """{kernel: bytes from each cache of |sizes|, and from memory behind them}."""
    caches, counts = [Cache(size) for size in sizes], {}
    for _ in range(PASSES):
        counts = {}
        for name, pages in kernels:
            counted = counts.setdefault(name, [0] * (len(sizes) + 1))
            for page, size in pages.items():
                found = [cache.use(page) for cache in caches]
                counted[found.index(True) if True in found else len(sizes)] += size
    return counts
