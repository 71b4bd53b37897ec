"""Faults made in good kernels of a card of 9.0, which the emulator has to find: a line of the LLVM IR is left out or changed.

    case, change, expected = fault("no release")        # change(text): the kernel's code with the fault
"""
import re

import kernel_cases

RING = kernel_cases.gemm(129, 128, 264, "bias", schedule=(2, 1, 128, 2, 1, 8, 1, 0))
CLUSTER = kernel_cases.gemm(65, 64, 520, "bias", out="f32", schedule=(1, 1, 64, 2, 4, 8, 0, 0))
ATTENTION = kernel_cases.attention(1, 1, 1, 130, 193, 64)
KERNELS = (RING, CLUSTER, ATTENTION)
WRONG = "at most"  # only the numbers show it


def without(instruction):
    return rf".*call [\w ]*@llvm\.nvvm\.{instruction}.*\n", ""


FENCE = without(r"fence\.proxy\.async")
NEVER = r"call i1 @llvm\.nvvm\.mbarrier\.try\.wait[^\n]*", "xor i1 false, true"
FINISH = r"wgmma\.wait_group\.sync\.aligned 0;", "wgmma.wait_group.sync.aligned 7;"

# Name: (kernel, (pattern, replacement), pattern of what the emulator prints or kernel_runs says).
FAULTS = {
    "no fence before a store": (RING, FENCE, "without fence.proxy.async"),
    "no fence of barriers": (RING, without(r"fence\.mbarrier_init"), "without fence.mbarrier_init"),
    "no waits at barriers": (RING, NEVER, "lacks no arrival"),
    "sums that are not waited for": (CLUSTER, FINISH, WRONG),
    "a stage that is given back early": (RING, (r"(@llvm\.nvvm\.wgmma\.wait_group\.sync\.aligned\(i64) 1", r"\1 7"), "while it ran"),
    "a group that is not committed": (RING, (r"wgmma\.commit_group\.sync\.aligned;", ""), f"{WRONG}|nobody goes on"),
    "no release": (RING, without(r"mbarrier\.arrive\.shared"), "nobody goes on"),
    "too few bytes": (RING, (r"(@llvm\.nvvm\.mbarrier\.arrive\.expect\.tx[^\n]*i32) \d+\)", r"\1 1024)"), "nobody goes on"),
    "a store that is not waited for": (RING, without(r"cp\.async\.bulk\.wait"), "read its memory"),
    "a descriptor of half the stride": (RING, ("1073741888", "1073741856"), WRONG),
    "no barrier of the cluster": (CLUSTER, without(r"barrier\.cluster\.(arrive|wait)"), WRONG),
    "attention: no fence before a store": (ATTENTION, FENCE, "without fence.proxy.async"),
    "attention: probabilities of products that run": (ATTENTION, FINISH, WRONG),
}


def fault(name):
    case, (pattern, replacement), expected = FAULTS[name]

    def change(text):
        changed = re.sub(pattern, replacement, text)
        if changed == text:
            raise ValueError(f"{name}: {case.name} has no {pattern}")
        return changed

    return case, change, expected
