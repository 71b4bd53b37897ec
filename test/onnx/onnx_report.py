"""What a run over the test data came to, as text: a summary, the failures by op, and docs/onnx-support.md."""

import collections
import os
import re

import onnx_cases

# Statuses from best to worst: a case's is the worst of its levels'.
STATUSES = ("passed", "refused", "run", "wrong", "error", "timeout", "crash")
NODE = re.compile(r"node '[^']*' \((?P<op>[\w.:]+)\): (?P<why>[^\n]*)")
NO_OP = re.compile(r"op (?P<op>\S+) of opset \d+ is not supported")


def reason_of(case, text):
    """A message without what differs from case to case: paths, names, numbers of opsets."""
    text = re.sub(r"; reproducer: .*", "", text.replace(case.model, "").lstrip(": ").split("\n")[0])
    node = NODE.search(text)
    if node:
        if NO_OP.match(node["why"]):
            return f"{node['op']}: not supported"
        text = f"{node['op']}: {node['why']}"
    text = re.sub(r"/[\w./+-]*/", "", text)
    return re.sub(r"'[^']*'", "'...'", text)[:160]


class Report:
    """|results|: {case name: {level: (status, reason)}}; |cases|: {name: Case}."""

    def __init__(self, results, cases):
        self.cases = cases
        self.results = results
        self.worst = {name: max(levels.values(), key=lambda result: STATUSES.index(result[0]))
                      for name, levels in results.items()}

    def passing(self):
        return {name for name, result in self.worst.items() if result[0] == "passed"}

    def kinds(self):
        """{kind: Counter of statuses}, in the order of the data."""
        table = collections.defaultdict(collections.Counter)
        for name in self.cases:
            if name in self.worst:
                table[self.cases[name].kind][self.worst[name][0]] += 1
        return table

    def groups(self, statuses):
        """[(status, reason, names)], the largest first."""
        found = collections.defaultdict(list)
        for name, (status, reason) in self.worst.items():
            if status in statuses:
                found[status, reason_of(self.cases[name], reason)].append(name)
        return sorted(((*key, sorted(names)) for key, names in found.items()), key=lambda group: (-len(group[2]), group))

    def print_failing(self):
        for name, levels in sorted(self.results.items()):
            for level, (status, reason) in levels.items():
                if status != "passed":
                    print(f"{status} {name} O{level}: {reason}")

    def summary(self):
        lines = [f"{'':18}" + "".join(f"{status:>9}" for status in STATUSES)]
        total = collections.Counter()
        for kind, counts in self.kinds().items():
            total += counts
            lines.append(f"{kind:18}" + "".join(f"{counts[status]:9}" for status in STATUSES))
        lines.append(f"{'all':18}" + "".join(f"{total[status]:9}" for status in STATUSES))
        return "\n".join(lines)

    def failures(self):
        """All but passed and refused, by the ops of the case."""
        bad = [name for name, result in self.worst.items() if result[0] not in ("passed", "refused")]
        by_op = collections.defaultdict(list)
        for name in sorted(bad):
            by_op[" ".join(sorted(onnx_cases.ops_of(self.cases[name].model))[:6])].append(name)
        text = [self.summary(), ""]
        for op, names in sorted(by_op.items(), key=lambda item: (-len(item[1]), item[0])):
            text.append(f"## {op} ({len(names)})")
            for name in names:
                for level, (status, reason) in self.results[name].items():
                    if status not in ("passed", "refused"):
                        text.append(f"{status} O{level} {name}: {reason[:400]}")
        return "\n".join(text) + "\n"

    def support_page(self):
        rows = []
        total = collections.Counter()
        for kind, counts in [*self.kinds().items(), ("all", total)]:
            if counts is not total:
                total += counts
            failed = sum(counts[status] for status in STATUSES[2:])
            rows.append(f"| {kind} | {sum(counts.values())} | {counts['passed']} | {counts['refused']} | {failed} |")
        refused = [f"| {len(names)} | {reason.replace('|', chr(92) + '|')} | {os.path.basename(names[0])} |"
                   for _, reason, names in self.groups(("refused",))]
        failed = [f"| {len(names)} | {status}: {reason.replace('|', chr(92) + '|')} | {os.path.basename(names[0])} |"
                  for status, reason, names in self.groups(STATUSES[2:])]
        return PAGE.format(cases="\n".join(rows), refused="\n".join(refused) or "| 0 | | |",
                           failed="\n".join(failed) or "| 0 | | |")


PAGE = """# What of ONNX is supported

Written by `test/onnx/run_onnx.py --update`, which compiles every case of ONNX 1.22.0's backend test data at O0 and O3
(whole networks at O1, functions written out in small ops at O3; [testing.md](testing.md#onnx) says why), runs it and
compares the outputs (rtol 1e-3, atol 1e-7, or what the case says). A case passes when all its levels do;
[test/onnx/passing.txt](../test/onnx/passing.txt) lists those that do, and `make check` fails when one of them no
longer does. *Refused* are those for which `o3c` says that it does not support the model; *failed* are wrong outputs,
run-time errors, internal errors, crashes and timeouts.

| cases | all | passed | refused | failed |
|-|-:|-:|-:|-:|
{cases}

## Refused, by reason
| cases | what o3c says | for example |
|-:|-|-|
{refused}

## Failed, by reason
| cases | what happens | for example |
|-:|-|-|
{failed}
"""
