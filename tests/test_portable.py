"""The package runs on Linux, macOS and Windows: what one of them lacks stands in a branch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from ode2opt.base.machine import cpu_count, physical_memory

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    [*(ROOT / "ode2opt").rglob("*.py"), *(ROOT / "tools").glob("*.py"), ROOT / "tests/conftest.py"]
)
MODULES = """
    crypt curses fcntl grp nis posix pty pwd readline resource spwd syslog termios tty
    msvcrt winreg winsound
"""
OF_OS = """
    O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC WNOHANG chown chroot confstr ctermid fchdir
    fchmod fchown fork forkpty fpathconf fstatvfs getegid geteuid getgid getgroups getloadavg
    getpgid getpgrp getpriority getresuid getsid getuid killpg lchown lockf major memfd_create
    mkfifo mknod nice openpty pathconf pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn
    pread preadv pwrite readv register_at_fork sched_getaffinity sched_setaffinity sched_yield
    sendfile setegid seteuid setgid setpgid setpriority setsid setuid statvfs sync sysconf
    tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid writev startfile
"""
OF_SIGNAL = """
    ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL
    SIGPIPE SIGPROF SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGWINCH alarm
    getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait
    sigwait sigwaitinfo
"""
NAMES = {
    "os": OF_OS.split(),
    "signal": OF_SIGNAL.split(),
    "time": {"clock_gettime", "clock_settime", "pthread_getcpuclockid", "tzset"},
    "select": {"devpoll", "epoll", "kqueue", "poll"},
    "ctypes": {"WinDLL", "WinError", "windll"},
}
FOLDERS = ("/proc/", "/sys/", "/dev/")
ASKS = {("os", "name"), ("sys", "platform"), ("platform", "system")}


def not_everywhere(source):
    """The lines and names of what some system lacks, outside a branch that asks for it."""
    tree = ast.parse(source)
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {name.asname or name.name: name.name for name in node.names}
    found = []

    def visit(node, guarded):
        if not guarded and (name := lacking(node, aliases)):
            found.append((node.lineno, name))
        inside = guarded or asks(node, aliases)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, False)
    return found


def lacking(node, aliases):
    """The name of what a node uses and some system lacks, or None."""
    modules = MODULES.split()
    if isinstance(node, ast.Import):
        return next((name.name for name in node.names if name.name in modules), None)
    if isinstance(node, ast.ImportFrom):
        names = NAMES.get(node.module, ())
        if node.module in modules:
            return node.module
        return next((f"{node.module}.{n.name}" for n in node.names if n.name in names), None)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = aliases.get(node.value.id)
        return f"{module}.{node.attr}" if node.attr in NAMES.get(module, ()) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if node.value.startswith(FOLDERS) else None
    return None


def asks(node, aliases):
    """Whether a node is a branch on the system, or ready for what is not there."""
    if isinstance(node, ast.Try):
        caught = {
            part.id for handler in node.handlers if handler.type is not None
            for part in ast.walk(handler.type) if isinstance(part, ast.Name)
        }  # fmt: skip
        return bool(caught & {"ImportError", "ModuleNotFoundError", "AttributeError"})
    if not isinstance(node, ast.If | ast.IfExp):
        return False
    for part in ast.walk(node.test):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            if (aliases.get(part.value.id), part.attr) in ASKS:
                return True
        elif isinstance(part, ast.Name) and part.id == "hasattr":
            return True
    return False


def test_nothing_is_used_that_a_system_lacks():
    assert len(SOURCES) > 100
    found = {
        str(path.relative_to(ROOT)): not_everywhere(path.read_text("utf-8")) for path in SOURCES
    }
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import os\nn = len(os.sched_getaffinity(0))", "os.sched_getaffinity"),
        ("import os as o\ndef f():\n    return o.fork()", "os.fork"),
        ("from os import getuid", "os.getuid"),
        ("def f():\n    import fcntl", "fcntl"),
        ("import resource as r", "resource"),
        ("from resource import getrusage", "resource"),
        ("import signal\nstop = [signal.SIGKILL]", "signal.SIGKILL"),
        ("import os\nif os.environ:\n    os.nice(5)", "os.nice"),
        ("import os\ntry:\n    os.nice(5)\nexcept OSError:\n    pass", "os.nice"),
        ("open('/proc/self/status')", "/proc/self/status"),
        ("import msvcrt", "msvcrt"),
    ],
)
def test_what_a_system_lacks_is_found(source, name):
    assert [found for _, found in not_everywhere(source)] == [name]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nif os.name == 'nt':\n    import msvcrt\nelse:\n    import fcntl",
        "import os\nn = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 1",
        "import sys\nif sys.platform == 'linux':\n    open('/proc/self/status')",
        "try:\n    import resource\nexcept ImportError:\n    resource = None",
        "'os.fork and /proc/self in a text'\nfork = {}\nfork.fork = 1",
    ],
)
def test_what_stands_in_a_branch_is_left_alone(source):
    assert not_everywhere(source) == []


def test_the_machines_numbers_are_those_of_the_system():
    psutil = pytest.importorskip("psutil")
    assert physical_memory() == pytest.approx(psutil.virtual_memory().total, rel=1e-3)
    assert 1 <= cpu_count() <= psutil.cpu_count()


def test_parts_are_worked_on_where_the_system_has_no_affinity():
    code = (
        "import os\n"
        "for name in ('sched_getaffinity', 'sched_setaffinity'):\n"
        "    if hasattr(os, name):\n"
        "        delattr(os, name)\n"
        "from ode2opt.executor import LocalExecutor\n"
        "print(LocalExecutor().threads >= 1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
