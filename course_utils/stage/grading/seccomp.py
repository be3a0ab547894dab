"""A filter of system calls: Linux refuses an answer's process new processes, signals and networks.

It holds for every library, and nothing that the process does later can take it away. A filter is a
program for the kernel, a list of (code, jump if true, jump if false, number), which runs at each
system call. Threads are allowed, because torch may start one. Elsewhere than on Linux on these two
processors this module does nothing.
"""

import ctypes
import errno
import platform
import struct
import sys

# The numbers by which the kernel tells a filter for which processor a call was made.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# The numbers of each call, on x86_64 and on aarch64; None where there is no such call.
REFUSED = {
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "ptrace": (101, 117),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "io_uring_setup": (425, 425),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
CLONE = (56, 220)
CLONE3 = (435, 435)
CLONE_THREAD = 0x00010000  # the flag by which clone makes a thread, not a process
OF_ANOTHER_KIND = 0x40000000  # x86_64 has its calls a second time from this number on

# The codes of instructions.
LOAD = 0x20
JUMP_IF_EQUAL = 0x15
JUMP_IF_AT_LEAST = 0x35
JUMP_IF_ANY_BIT = 0x45
RETURN = 0x06
# At which byte each thing begins in what the kernel shows the filter, its struct seccomp_data.
NUMBER_AT = 0
ARCHITECTURE_AT = 4
FIRST_ARGUMENT_AT = 16
# What the filter can return; REFUSE together with the number of the error that the call gets.
ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050000
# Options of prctl.
NO_NEW_PRIVILEGES = 38
SECCOMP = 22
FILTER = 2
Instruction = tuple[int, int, int, int]


def program(machine: str) -> list[Instruction]:
    """Return the filter for that processor, as a list of instructions.

    A jump has two numbers: how many instructions it skips if its condition holds, and how many
    otherwise.
    """
    column = list(ARCHITECTURES).index(machine)  # of the numbers in REFUSED, CLONE and CLONE3
    refusal = (RETURN, 0, 0, REFUSE | errno.EPERM)
    no_such_call = (RETURN, 0, 0, REFUSE | errno.ENOSYS)
    steps: list[Instruction] = [
        # A call for another processor, whose numbers mean other calls, kills the process.
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JUMP_IF_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        # From here on, each instruction looks at the number of the call.
        (LOAD, 0, 0, NUMBER_AT),
        (JUMP_IF_AT_LEAST, 0, 1, OF_ANOTHER_KIND),
        refusal,
    ]
    for numbers in REFUSED.values():
        number = numbers[column]
        if number is not None:
            steps.append((JUMP_IF_EQUAL, 0, 1, number))  # any other number skips the refusal
            steps.append(refusal)
    # Whoever gets "no such call" for clone3 takes clone, whose flags a filter can read.
    steps.append((JUMP_IF_EQUAL, 0, 1, CLONE3[column]))
    steps.append(no_such_call)
    # Refuse clone unless it makes a thread, and allow every other call.
    steps += [
        (JUMP_IF_EQUAL, 0, 3, CLONE[column]),  # any other call skips three, to ALLOW
        (LOAD, 0, 0, FIRST_ARGUMENT_AT),
        (JUMP_IF_ANY_BIT, 1, 0, CLONE_THREAD),
        refusal,
        (RETURN, 0, 0, ALLOW),
    ]
    return steps


def refuse() -> bool:
    """Set the filter for this process, and return whether that worked.

    `bounds` goes on without a filter, too: its audit hook refuses much of the same.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ARCHITECTURES:
        return False
    steps = program(machine)
    # The kernel's sock_filter: numbers of 16, 8, 8 and 32 bits.
    packed = b"".join(struct.pack("HBBI", *step) for step in steps)
    instructions = ctypes.create_string_buffer(packed, len(packed))
    # The kernel's sock_fprog: how many instructions there are, and where.
    header = struct.pack("HL", len(steps), ctypes.addressof(instructions))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]  # an address needs more than an int
    header_in_memory = ctypes.create_string_buffer(header, len(header))
    # Without this, the kernel takes a filter from root alone.
    if prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return prctl(SECCOMP, FILTER, ctypes.addressof(header_in_memory), 0, 0) == 0
