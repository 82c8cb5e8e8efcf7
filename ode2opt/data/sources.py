"""Where a dataset's files come from: a local folder, the cache, or a hash-checked download."""

from __future__ import annotations

import hashlib
import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from ode2opt.base.errors import DataUnavailableError, sentence

LIBSVM_SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
COVTYPE_TEXT = "covtype.data.gz"  # as UCI gives it: 54 features and the class, comma separated
COVTYPE_URL = "https://ndownloader.figshare.com/files/5976039"

SHA256 = {
    "a5a": "5cb3a6603de0a0eb43afcdd45b1820c71ee7f20da1c09f054696bb71cbc45ad8",
    "a5a.t": "9ddbc60c0a3c5a8249e51f663d7110c4050e40d67301640418e9f44186db1bd1",
    "w3a": "f050c32d3bd2f18eccbe3847cfe8a3ba9dae4de67d73236013c4a7b9afb48cc7",
    "w3a.t": "623e195812435d3c54a0a87120ba9a927ed9771b1d29f9e35fdfa381416b2fb3",
    "mushrooms": "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
    "phishing": "0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a",
    "covtype20k": "ce3fbfdbe2195b98941f1314bc1249cd67ce961b5988bd8baf1bebb2579eb620",
    COVTYPE_TEXT: "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
}
"""The files whose contents are known; others are taken as they are."""
NOT_ON_A_SITE = ("covtype20k",)


class DataWarning(UserWarning):
    """A dataset's file is not the one that is known by its name."""


class DownloadBar(Protocol):
    """What a download reports to: the few calls of a tqdm bar that pooch makes."""

    total: int

    def update(self, n: int) -> None:
        """Move the bar."""

    def reset(self) -> None:
        """Start again at zero."""

    def close(self) -> None:
        """Take the bar away."""


def local_folder() -> Path | None:
    """Return the folder that ``ODE2OPT_DATA`` names, if it is set."""
    folder = os.environ.get("ODE2OPT_DATA")
    return Path(folder) if folder else None


def cache_folder() -> Path:
    """Return where downloads are kept: ``ODE2OPT_CACHE``, or the system's place for caches."""
    import pooch

    return Path(os.environ.get("ODE2OPT_CACHE") or pooch.os_cache("ode2opt"))


def find_file(name: str) -> Path | None:
    """Return the file if it is on this machine: in the local folder, else in the cache."""
    folder = local_folder()
    places = ([folder] if folder else []) + [cache_folder()]
    return next((place / name for place in places if (place / name).is_file()), None)


def obtain_file(name: str, progress: DownloadBar | None = None) -> Path:
    """Return the file, downloading it into the cache if it is not on this machine."""
    folder = local_folder()
    if folder is not None and (folder / name).is_file():
        return check_hash(folder / name)
    if name not in SHA256 or name in NOT_ON_A_SITE:
        raise unavailable(name, "it is not on the LIBSVM site")
    return _download(name, progress)


def check_hash(path: Path) -> Path:
    """Return the file; warn if it is not the one that is known by this name."""
    due, status = SHA256.get(path.name), path.stat()
    if due is not None and _hash(path, status.st_size, status.st_mtime_ns) != due:
        warnings.warn(
            sentence(
                f"{path} is not the known file of this name: its SHA-256 is another one, and so "
                f"will be what is measured with it."
            ),
            DataWarning,
            stacklevel=2,
        )
    return path


@lru_cache
def _hash(path: Path, size: int, changed: int) -> str:
    """Return a file's SHA-256; size and time of the last change tell that it is still the same."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _download(name: str, progress: DownloadBar | None) -> Path:
    """Return the cached file if its hash is right, else fetch it."""
    import pooch

    logger = pooch.get_logger()
    level, quiet = logger.level, "ERROR"
    logger.setLevel(quiet)
    try:
        path = pooch.retrieve(
            url=COVTYPE_URL if name == COVTYPE_TEXT else LIBSVM_SITE + name,
            known_hash="sha256:" + SHA256[name],
            fname=name,
            path=cache_folder(),
            downloader=pooch.HTTPDownloader(progressbar=progress or False, timeout=30),
        )
    except ValueError:
        raise unavailable(name, "what the site sent does not have the expected hash") from None
    except OSError as error:  # requests' errors are OSErrors, as are those of the disk
        raise unavailable(name, f"the download failed ({_reason(error)})") from None
    finally:
        logger.setLevel(level)
    return Path(path)


def unavailable(name: str, why: str) -> DataUnavailableError:
    """Return the error that says which file is missing and the two ways to get it."""
    folder = local_folder()
    looked = f"{folder} and " if folder else ""
    return DataUnavailableError(
        f"The file '{name}' is not in {looked}{cache_folder()}, and {why}: set ODE2OPT_DATA to a "
        f"folder that holds it, or run 'ode2opt data fetch' with a network connection."
    )


def _reason(error: OSError) -> str:
    if error.strerror:
        return error.strerror
    return "no network" if "onnection" in type(error).__name__ else type(error).__name__
