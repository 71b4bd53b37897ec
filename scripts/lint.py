#!/usr/bin/env python3
"""Checks the rules that the tree keeps; `lint.py --format` formats the C code instead.

Each rule is one function that yields what breaks it, as "path:line: what, and the rule". Only Python's
standard library is used. To add a rule, write the function and name it in RULES.
"""

import concurrent.futures
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE_FOLDERS = ("include", "src", "runtime", "tools", "test", "bench", "examples")
SKIPPED_FOLDERS = {"build", "venv", "node_modules", ".git", "data", "__pycache__"}

# A folder of src/ includes only itself and those before it ...
ORDER = "base tensorio ir import normalize analysis rewrite fuse schedule target package driver".split()
# ... but these pairs (folder, header or folder) are allowed too.
EXCEPTIONS = {("normalize", "analysis/"), ("rewrite", "target/target.h"), ("schedule", "target/target.h")}

MAX_FUNCTION_LINES = 60
MAX_MEDIAN_LINES = 15
MAX_FILE_LINES = 1000
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def files(*endings, folders=CODE_FOLDERS):
    """Paths relative to the root, sorted."""
    found = []
    for folder in folders:
        for place, subfolders, names in os.walk(os.path.join(ROOT, folder)):
            subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
            found += [os.path.relpath(os.path.join(place, name), ROOT) for name in names if name.endswith(endings)]
    return sorted(found)


def lines_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read().splitlines()


def includes_of(path):
    for number, line in enumerate(lines_of(path), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1)


def include_allowed(path, header):
    """None, or the rule that the #include of |header| in |path| breaks."""
    area, *rest = path.split("/")
    folder = rest[0] if area == "src" else None
    first = header.split("/")[0]
    if first == "mlir-c" and folder != "ir":
        return "only src/ir includes mlir-c; use ir/*.h"
    if folder == "base" and re.search(r"mlir|llvm-c|cuda", header):
        return "base knows neither MLIR nor LLVM nor CUDA"
    if area == "runtime" and (first in ORDER or first in ("llvm-c", "tools", "test")):
        return "the runtime includes only runtime/ and include/o3"
    if area == "src" and first in ("tools", "test", "bench"):
        return "a library includes no tool and no test"
    if area == "src" and first == "runtime" and header != "runtime/compiled.h":
        return "of the runtime the compiler sees runtime/compiled.h only"
    if folder and first in ORDER and "/" in header and ORDER.index(first) > ORDER.index(folder):
        if not any(folder == who and header.startswith(what) for who, what in EXCEPTIONS):
            return "a folder includes only those before it: " + ", ".join(ORDER)
    return None


def folder_direction():
    for path in files(".c", ".h", ".def", folders=("src", "runtime", "tools", "include")):
        area, *rest = path.split("/")
        if area == "src" and len(rest) > 1 and rest[0] not in ORDER:
            yield f"{path}:1: src/{rest[0]} is not a folder of the design: {', '.join(ORDER)}"
            continue
        for number, header in includes_of(path):
            broken = include_allowed(path, header)
            if broken:
                yield f"{path}:{number}: includes '{header}': {broken}"


def functions_of(lines):
    """(first line, last line) of each function, 1-based; relies on clang-format's layout."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None:
            if re.match(r"[A-Za-z_]", line) and "(" in line and not line.rstrip().endswith(";"):
                start, body = number, False
        if start is not None:
            if not body:
                stripped = line.rstrip()
                if stripped.endswith("{"):
                    body = True
                elif stripped.endswith((";", "}")):
                    start = None
            elif line.startswith("}"):
                if line.rstrip() == "}":
                    yield start, number
                start = None


def comment_above(lines, first):
    """The comment that ends right above line |first|."""
    text, number = [], first - 2
    while number >= 0 and re.match(r"\s*(/\*|\*|//)", lines[number]):
        text.append(lines[number])
        number -= 1
    return "\n".join(text)


def function_length():
    for path in files(".c", ".h"):
        lines = lines_of(path)
        for first, last in functions_of(lines):
            length = last - first + 1
            if length > MAX_FUNCTION_LINES and "long:" not in comment_above(lines, first):
                yield (f"{path}:{first}: function of {length} lines; over {MAX_FUNCTION_LINES} a comment above it "
                       "gives the reason, after 'long:'")


def function_median():
    lengths = [last - first + 1 for path in files(".c", ".h", folders=("include", "src", "runtime", "tools"))
               for first, last in functions_of(lines_of(path))]
    if lengths and statistics.median(lengths) > MAX_MEDIAN_LINES:
        yield f"the median function has {statistics.median(lengths)} lines, {MAX_MEDIAN_LINES} at most are wanted"


def file_length():
    for path in files(".c", ".h", ".def", ".py", ".sh"):
        length = len(lines_of(path))
        if length >= MAX_FILE_LINES:
            yield f"{path}:1: {length} lines; files have less than {MAX_FILE_LINES}"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def header_command(generated):
    llvm = output_of(os.environ.get("LLVM_CONFIG", "llvm-config-22"), "--includedir")[0]
    libraries = output_of("pkg-config", "--cflags", "libcjson", "libzip", "libprotobuf-c", "cmocka")
    return (["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-D_GNU_SOURCE=", "-Isrc", "-Iinclude",
             "-I.", "-isystem", generated, "-isystem", llvm] + libraries + ["-x", "c"])


def headers_alone():
    with tempfile.TemporaryDirectory() as generated:
        for proto in files(".proto"):
            subprocess.run(["protoc-c", "--c_out=" + generated, "-I" + os.path.dirname(proto), proto], check=True,
                           cwd=ROOT)
        command = header_command(generated)

        def compile_header(path):
            return path, subprocess.run(command + [path], cwd=ROOT, capture_output=True, text=True)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, result in pool.map(compile_header, files(".h")):
                if result.returncode:
                    yield f"{path}:1: does not compile by itself:\n{result.stderr.rstrip()}"


def clang_format(*options):
    paths = files(".c", ".h")
    return subprocess.run(["clang-format-22", *options, *paths], cwd=ROOT, capture_output=True, text=True)


def formatting():
    result = clang_format("--dry-run", "-Werror")
    places = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", result.stderr, re.M)))
    for path in places:
        yield f"{path}:1: not formatted: make format"
    if result.returncode and not places:
        yield f"clang-format failed: {result.stderr}"


def unique_names():
    seen = {}
    for path in files(".c", ".h", ".def", ".proto", ".mlir", folders=("src", "runtime", "include")):
        name = os.path.basename(path)
        if name in seen:
            yield f"{path}:1: {seen[name]} has the same name; file names are unique"
        seen[name] = path


def code_of(path):
    """The text without comments, whose line breaks stay."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)
    return token.sub(lambda m: m[0] if m[0][0] == '"' else "\n" * m[0].count("\n"), "\n".join(lines_of(path)))


def pasted_names(codes):
    """(name, path): what the rows of tables become by macros that put 'o3..._' before an argument."""
    prefixes = {}
    for code in codes.values():
        for name, body in re.findall(r"^ *#define (\w+)\([^)\n]*\)((?:.*\\\n)*.*)", code, re.M):
            prefixes.setdefault(name, set()).update(re.findall(r"\b(o3\w+_)##", body))
    macros = "|".join(name for name in prefixes if prefixes[name])
    for path, code in codes.items():
        for name, row in re.findall(rf"^ *({macros})\((.*?)\)\s*$", code, re.M | re.S):
            yield from ((prefix + word, path) for word in re.findall(r"\w+", row) for prefix in prefixes[name])


DECLARED = re.compile(r"^(?!static\b|typedef\b|return\b)[A-Za-z_][\w *]*[ *\n]\**(o3\w+)\(", re.M)


def shared_functions():
    """A function that a header declares is one that other files use, or a macro of the header."""
    codes = {path: code_of(path) for path in files(".c", ".h", ".def")}
    users = {}
    for path, code in codes.items():
        for word in re.findall(r"\bo3\w+", code):
            users.setdefault(word, []).append(path)
    for name, path in pasted_names(codes):
        users.setdefault(name, []).append(path)
    for path in files(".h", folders=("src", "runtime", "tools")):
        for match in DECLARED.finditer(codes[path]):
            places = users[match[1]]
            if len(set(places)) <= 2 and places.count(path) == 1:
                yield (f"{path}:{codes[path].count(chr(10), 0, match.start(1)) + 1}: '{match[1]}' is used by no other "
                       "file than its own; it is static there, or goes")


OPTION_ROW = re.compile(r"""^\w+_OPTION\((?:'(\w)'|0), "([\w-]+)"|\{"([\w-]+)", \w+_argument, NULL, (?:'(\w)')?""", re.M)


def options_of(tool):
    """{name: (letter or "", path)}: the rows of the tool's table, from which --help is made, or getopt's of o3-opt."""
    found = {}
    for path in files("_options.def", "_options.c", folders=(f"tools/{tool}",)):
        for match in OPTION_ROW.finditer(code_of(path)):
            found[match[2] or match[3]] = match[1] or match[4] or "", path
    return found


def manual_entries(path):
    """(line number, name, letter or ""): the options that begin an entry (.TP, .TQ) of a manual page."""
    lines = lines_of(path)
    for number, line in enumerate(lines):
        if number and lines[number - 1] in (".TP", ".TQ") and line.startswith(".B"):
            letter = re.match(r"\.BR? \\-(\w) ", line)
            for name in re.findall(r"\\-\\-([a-z][a-z\\-]*)", line):
                yield number + 1, name.replace("\\", ""), letter[1] if letter else ""


def manual_options():
    """A tool's options are those of its manual page, letters too; --help is made from the same tables."""
    for path in sorted(files(".1", folders=("docs/man",))):
        tool = os.path.basename(path)[:-2]
        options, entries = options_of(tool), list(manual_entries(path))
        for number, name, letter in entries:
            if name not in options or options[name][0] != letter:
                yield f"{path}:{number}: '--{name}' with the letter '{letter}' is no option of {tool}"
        for name in sorted(set(options) - {name for _, name, _ in entries}):
            yield f"{options[name][1]}:1: {path} has no entry for '--{name}'"


def unfinished():
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    endings = (".c", ".h", ".def", ".py", ".sh", ".cmake", ".mlir", ".proto", ".txt", ".md")
    for path in files(*endings, folders=CODE_FOLDERS + ("scripts", "cmake", "docs")):
        for number, line in enumerate(lines_of(path), 1):
            if marks.search(line):
                yield f"{path}:{number}: unfinished: {line.strip()}"


RULES = [folder_direction, function_length, function_median, file_length, headers_alone, formatting, unique_names,
         shared_functions, manual_options, unfinished]


def main():
    if sys.argv[1:] == ["--format"]:
        result = clang_format("-i")
        sys.stderr.write(result.stderr)
        return result.returncode
    if sys.argv[1:]:
        sys.exit(f"lint: unknown option '{sys.argv[1]}'; usage: lint.py [--format]")
    failed = 0
    for rule in RULES:
        findings = list(rule())
        failed += bool(findings)
        print(f"{'FAIL' if findings else 'PASS'} {rule.__name__.replace('_', ' ')}")
        for finding in findings:
            print("  " + finding)
    print(f"lint: {len(RULES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
