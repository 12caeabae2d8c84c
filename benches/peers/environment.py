"""A virtual environment with the pinned libraries, made once and reused while the pins stay the same.

**torch without GPU libraries.** The default index has for Linux only a wheel built with CUDA. Its dependencies would be
about two gigabytes that a CPU never uses, but without them the wheel cannot be loaded: the dynamic linker wants every
library named in it to exist. Functions, though, are looked up when first called if the loader is asked to be lazy
(`torch_jobs.py` asks). So each missing library is replaced by a small one that exists, torch's own
`libtorch_global_deps.so` under another name; no GPU function is ever called. Only the virtual environment is touched.
"""

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLDEST = (3, 11)  # what the pinned numpy and jax ask for

LOAD_TORCH = "import os, sys; sys.setdlopenflags(os.RTLD_LAZY); import torch; (torch.ones(2) @ torch.ones(2)).item()"


class Failed(Exception):
    """One line for the user."""


def run(command, cure):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise Failed(f"`{' '.join(map(str, command[:4]))} …` failed: {lines[-1]} ({cure})")
    return done


def python_of(folder):
    return Path(folder, "Scripts" if platform.system() == "Windows" else "bin", "python")


def make(folder, with_torch=True, say=print):
    """The environment's Python, and None or the reason why torch is not there."""
    if sys.version_info < OLDEST:
        raise Failed(f"Python {'.'.join(map(str, OLDEST))} or newer is needed, this is {platform.python_version()}")
    folder, python = Path(folder), python_of(folder)
    base = HERE / "requirements.txt"
    if not stamped(folder, base):
        if not (folder / "pyvenv.cfg").exists():
            say(f"making a virtual environment in {folder}")
            try:
                import ensurepip  # noqa: F401  (Debian ships `venv` without it)
                import venv  # noqa: F401
            except ImportError:
                raise Failed("this Python cannot make virtual environments; on Debian: apt install python3-venv") from None
            run([sys.executable, "-m", "venv", folder], "is the folder writable?")
        say("installing " + ", ".join(pins(base)))
        install(python, "-r", base)
        stamp(folder, base)
    return python, add_torch(folder, python, say) if with_torch else "left out as asked"


def add_torch(folder, python, say):
    """Installs torch; an environment without it is still good for everything else, so failing is only reported."""
    wanted = HERE / "requirements-torch.txt"
    if stamped(folder, wanted):
        return None
    say("installing " + ", ".join(pins(wanted)[:1]) + " (700 MB)")
    try:
        install(python, "--no-deps", "-r", wanted)
        stand_in_for_gpu_libraries(python)
    except Failed as reason:
        return str(reason)
    stamp(folder, wanted)
    return None


def stand_in_for_gpu_libraries(python):
    """Loads torch again and again; each time one more missing GPU library gets its stand-in."""
    lib = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], "").stdout.strip(), "torch/lib")
    for _ in range(40):
        done = subprocess.run([str(python), "-c", LOAD_TORCH], capture_output=True, text=True)
        if done.returncode == 0:
            return
        missing = re.search(r"ImportError: (lib(?:cu|nv|nccl)[\w.]*\.so[.\d]*): cannot open shared object", done.stderr)
        if not missing or (lib / missing[1]).exists():
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise Failed(f"torch cannot be loaded: {last}")
        shutil.copyfile(lib / "libtorch_global_deps.so", lib / missing[1])
    raise Failed("torch cannot be loaded: too many missing libraries")


def install(python, *what):
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    if subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True).returncode:
        raise Failed("the virtual environment has no pip; on Debian: apt install python3-pip python3-venv, then remove it")
    run([*pip, *what], "is the package index reachable?")


def pins(requirements):
    lines = requirements.read_text().splitlines()
    return [line.split(";")[0].replace("==", " ").strip() for line in lines if line and not line.startswith("#")]


def digest(requirements):
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def stamped(folder, requirements):
    mark = Path(folder, requirements.stem + ".installed")
    return mark.exists() and mark.read_text() == digest(requirements)


def stamp(folder, requirements):
    Path(folder, requirements.stem + ".installed").write_text(digest(requirements))
