"""Tables of a page that several scripts write, each its own sections; what a run did not measure stays as it is."""


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(lines):
    """[(header, [row, ...])] of |lines|; the line of dashes is no row."""
    found, header = [], None
    for line in lines:
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = line
            found.append((header, []))
        elif set(line) - set("|-: "):
            found[-1][1].append(line)
    return found


def with_old_rows(lines, old, keys):
    """|lines| with the rows that |old| has in a table of the same header and that |lines| has not, by their first
    |keys| cells: in old's order, new ones last. Old tables of other headers stay below, for a hand to put right."""
    known = dict(tables(old))
    merged = list(lines)
    for header, rows in tables(lines):
        new = {tuple(cells(row)[:keys]): row for row in rows}
        kept = known.get(header, [])
        order = [tuple(cells(row)[:keys]) for row in kept]
        all_rows = [new.get(key, row) for key, row in zip(order, kept)] + [row for key, row in new.items() if key not in order]
        start = merged.index(header) + 2
        merged[start:start + len(rows)] = all_rows
    for header in known.keys() - dict(tables(lines)).keys():
        merged += ["", header, "|" + "-|" * len(cells(header)), *known[header]]
    return merged


def split(path, heading):
    """The lines of the file before |heading| ("## Networks"), from there up to the next such heading, and after it."""
    with open(path, encoding="utf-8") as file:
        old = file.read().splitlines()
    start = next((i for i, line in enumerate(old) if line == heading), len(old))
    end = next((i for i in range(start + 1, len(old)) if old[i].startswith("## ")), len(old))
    return old[:start], old[start:end], old[end:]


def section(path, heading):
    """Its lines; none where the file has no such section."""
    return split(path, heading)[1]


def write(path, heading, lines, keys=1):
    """Puts |lines| below |heading| in place of what is there, but for rows of its tables that |lines| has not; a new
    section goes to the end."""
    before, replaced, after = split(path, heading)
    while before and not before[-1]:
        before.pop()
    text = [*before, "", heading, "", *with_old_rows(lines, replaced, keys), *([""] if after else []), *after]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(text) + "\n")
