"""Data sets of the Hugging Face hub: fetched by commit, checked by hash, kept whole or not at all.

The client is ``huggingface_hub``, with its cache (``HF_HOME``), its token (``HF_TOKEN`` or ``hf auth login``) and its
offline mode (``HF_HUB_OFFLINE=1``). Added here: one patience for all requests, a hash for every file, the list of a
commit's files at hand offline, and faults told in one sentence. A token is read by the client alone.

Files come by plain HTTP unless ``HF_HUB_DISABLE_XET=0`` asks for the hub's other protocol, which has a patience of
its own.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import posixpath
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmirt.errors import InputError, faults, nearest
from benchmirt.files import atomic_folder, read_json, sha256_of, write_json
from benchmirt.ids import slug

if TYPE_CHECKING:
    import httpx2

__all__ = ["DataSet", "Patience", "ask", "fetch"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CARD = ("README.md", "LICENSE", "LICENSE.txt", "LICENSE.md")
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_RATE_LIMIT = re.compile(r'"\w+"\s*;\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d+)')
_BLOCK = 1 << 20
_STATISTICS = "/api/agent-harnesses"  # what the client asks beside the data
_OUT_OF_REACH = "the hub is busy or out of reach"
_ONLINE = "Fetch it once with a connection and without HF_HUB_OFFLINE"


@dataclass(frozen=True)
class DataSet:
    """What is wanted of the hub.

    Attributes
    ----------
    repo
        The data set, as in ``owner/name``.
    revision
        A commit of 40 hexadecimal digits, or a branch or tag, which is resolved and told.
    files
        Names of files in which ``*`` and ``?`` stand for anything; empty: all but hidden ones and the data card.
    sha256
        File -> SHA-256 that it must have.
    """

    repo: str
    revision: str = "main"
    files: tuple[str, ...] = ()
    sha256: Mapping[str, str] | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> DataSet:
        """Return what a source of a study asks for; see ``hub`` in the schema of the configuration."""
        return cls(
            options["hub"], options["revision"], tuple(options.get("files", ())), dict(options["sha256"])
        )

    @property
    def asked(self) -> str:
        """What is asked for, in one text."""
        return " ".join([self.repo, self.revision, *self.files])

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit, which never changes."""
        return _COMMIT.fullmatch(self.revision) is not None

    def fault(self, what: str, where: str | None = None, **more: str | None) -> InputError:
        """Return a fault of this data set."""
        return InputError(what, file=f'data set "{self.repo}" of the hub', where=where, **more)


@dataclass(frozen=True)
class Patience:
    """How long a hub that is busy or out of reach is waited for.

    Attributes
    ----------
    tries
        Most requests for one thing, at least 1.
    wait
        Seconds before the second try, doubled before each further one; a time that the hub names stands instead.
    longest_wait
        Most seconds between two tries. If the hub asks for more, the fetch ends and says so.
    timeout
        Seconds without a byte after which a try has failed.
    """

    tries: int = 6
    wait: float = 2.0
    longest_wait: float = 300.0
    timeout: float = 30.0

    def before(self, attempt: int, asked: float | None) -> float:
        """Return the seconds to wait after a failed attempt, counted from 1."""
        return asked if asked is not None else min(self.wait * 2 ** (attempt - 1), self.longest_wait)


class _GaveUpError(Exception):
    """Patience has an end; not one of the client's exceptions, so that the client does not try on."""


@dataclass(frozen=True)
class _Listed:
    """A file as the hub lists it: size in bytes, SHA-256 (of large files) or git's own hash of its content."""

    size: int
    sha256: str | None
    git: str


def fetch(wanted: DataSet, folder: Path, record: Path, patience: Patience | None = None) -> None:
    """Fetch files of a data set into a folder, and record where they come from.

    Files that the client's cache holds are not fetched again, and an interrupted fetch goes on where it stopped:
    after a cut in the middle of a file, and file by file in another run.

    Parameters
    ----------
    wanted
        The data set.
    folder
        Takes the files by their names in the data set; it appears when all of them are there.
    record
        A JSON file: data set, revision as asked and as a commit, files with size and SHA-256.
    patience
        For a hub that is busy or out of reach.

    Raises
    ------
    InputError
        If the data set, the revision or a file is not there or may not be read; if the hub stays out of reach; if a
        file is not what the hub lists or what ``sha256`` says. Nothing is left in `folder` then.
    """
    with _client(patience or Patience()), _told(wanted):
        commit = _commit(wanted)
        listing = _listing(wanted, commit)
        names = _chosen(wanted, listing)
        kept: dict[str, dict[str, Any]] = {}
        with atomic_folder(folder) as temporary:
            for name in names:
                path, digest = _verified(wanted, commit, name, listing[name], patience or Patience())
                _place(path, temporary / name)
                kept[name] = {"size": listing[name].size, "sha256": digest}
        write_json(_record(wanted, commit, kept), record)
    _log.info("%s: %d files of %s", wanted.repo, len(names), commit)


def ask(wanted: Sequence[DataSet], note: Path, patience: Patience | None = None) -> None:
    """Ask whether several data sets are there, may be read and hold the files, before the first of them is fetched.

    Of the processes that ask at one time, one does; the others wait for what it finds.

    Parameters
    ----------
    wanted
        The data sets; a single one is not asked about, since fetching it tells as much.
    note
        A JSON file that remembers what was to be had, so that nothing is asked twice.
    patience
        For a hub that is busy or out of reach.

    Raises
    ------
    InputError
        If any is not to be had: one sentence for all that have the same fault. At once if the hub stays out of reach.
    """
    if len(wanted) < 2:
        return
    came = time.time()
    with _alone(note.with_suffix(".lock")):
        known = read_json(note) if note.is_file() else {"asked": []}
        if known.get("failed", 0) > came:
            raise InputError(
                "not fetched, since other data sets are not to be had",
                todo="The log of another fetch says why",
            )
        done = set(known["asked"])
        new = [one for one in wanted if one.asked not in done]
        try:
            _ask(new, patience or Patience())
        except InputError:
            write_json({**known, "failed": time.time()}, note)
            raise
        if new:
            write_json({"asked": sorted({*done, *(one.asked for one in new)})}, note)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process is here."""
    import fcntl

    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as stream:
        with suppress(OSError):  # a file system without locks: each asks for itself
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _ask(wanted: Sequence[DataSet], patience: Patience) -> None:
    """Ask about data sets.

    Raises
    ------
    InputError
        As :func:`ask`.
    """
    told: dict[str, list[InputError]] = {}
    with _client(patience):
        for one in wanted:
            try:
                with _told(one):
                    _check_had(one)
            except InputError as fault:
                if fault.what == _OUT_OF_REACH:
                    raise
                told.setdefault(fault.what, []).append(fault)
    if told:
        raise faults([_together(own, len(wanted)) for own in told.values()])


def _check_had(wanted: DataSet) -> None:
    """Check that the files of a data set are listed and may be read; offline no more can be asked than the cache knows."""
    from huggingface_hub import errors, get_hf_file_metadata, hf_hub_url

    commit = _commit(wanted, tell=False)  # the fetch will
    name = _chosen(wanted, _listing(wanted, commit))[0]
    if not _is_offline():
        try:
            get_hf_file_metadata(hf_hub_url(wanted.repo, name, repo_type="dataset", revision=commit))
        except errors.RemoteEntryNotFoundError:
            raise _gone(wanted, name) from None


def _together(told: Sequence[InputError], number: int) -> InputError:
    """Return one fault for several data sets, whose names the log lists."""
    if len(told) == 1:
        return told[0]
    first = told[0]
    _log.error("%s:\n  %s", first.what, "\n  ".join(str(fault.file) for fault in told))
    return InputError(
        f"{len(told)} of {number} data sets: {first.what}",
        file=f"{first.file} and {len(told) - 1} more, which the log lists",
        where=first.where,
        found=first.found,
        todo=f"{first.todo}. Do the same with the others",
    )


def _record(wanted: DataSet, commit: str, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    from huggingface_hub import constants

    return {
        "data_set": wanted.repo,
        "address": f"{constants.ENDPOINT}/datasets/{wanted.repo}/tree/{commit}",
        "revision": wanted.revision,
        "commit": commit,
        "pinned": wanted.pinned,
        "files": files,
    }


# -- the client ---------------------------------------------------------------------------------------------


@contextmanager
def _client(patience: Patience) -> Iterator[None]:
    """Have the client send all its requests with our patience; proxies and certificates stay those of the user."""
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")  # both are read when the client is imported
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    import httpx2
    import huggingface_hub

    usual: Any = {"event_hooks": huggingface_hub.get_session().event_hooks, "follow_redirects": True}
    # Both name addresses whole, and that of a large file holds a signature that lets anybody read it.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)

    class Patient(httpx2.Client):
        """Sends a request again while the hub is busy or out of reach."""

        def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
            if request.url.path == _STATISTICS:
                return httpx2.Response(404, request=request)
            request.extensions["timeout"] = httpx2.Timeout(patience.timeout).as_dict()
            return _patiently(lambda: super(Patient, self).send(request, **how), patience, request)

    huggingface_hub.set_client_factory(lambda: Patient(**usual))
    try:
        yield
    finally:
        huggingface_hub.set_client_factory(lambda: httpx2.Client(timeout=None, **usual))


def _patiently(
    send: Callable[[], httpx2.Response], patience: Patience, request: httpx2.Request
) -> httpx2.Response:
    """Send a request until it is answered.

    Raises
    ------
    _GaveUpError
        If patience ends, or the hub asks for more of it.
    """
    import httpx2

    what = f"{request.url.host}{request.url.path}"  # never its query, which may hold a signature
    if "range" in request.headers:
        _log.info("%s: cut off; going on with %s", what, request.headers["range"])
    attempt = 0
    while True:
        attempt += 1
        asked = None
        try:
            response = send()
        except (httpx2.TimeoutException, httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            why = f"no answer ({str(error) or type(error).__name__})"
        else:
            if response.status_code not in _BUSY:
                return response
            why = f"status {response.status_code}"
            asked = _asked(response.headers)
            response.close()
        _wait(patience, attempt, why, what, asked)


def _wait(patience: Patience, attempt: int, why: str, what: str, asked: float | None = None) -> None:
    """Wait before the next attempt.

    Raises
    ------
    _GaveUpError
        If that was the last one, or the hub asks for a longer wait than there is patience for.
    """
    if asked is not None and asked > patience.longest_wait:
        raise _GaveUpError(f"{why}, and the request to wait {asked:.0f} s")
    if attempt >= patience.tries:
        raise _GaveUpError(f"{why} {attempt} times" if attempt > 1 else why)
    seconds = patience.before(attempt, asked)
    _log.info("%s: %s; next try in %.3g s (%d of %d)", what, why, seconds, attempt + 1, patience.tries)
    time.sleep(seconds)


def _asked(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks to wait, by ``Retry-After`` or ``RateLimit``."""
    after = headers.get("retry-after", "").strip()
    if after.isdigit():
        return float(after)
    limit = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    return float(limit[1]) if limit else None


@contextmanager
def _told(wanted: DataSet) -> Iterator[None]:
    """Turn the client's exceptions into one sentence each.

    Raises
    ------
    InputError
        In the place of any of them.
    """
    import httpx2
    from huggingface_hub import constants, errors, get_token

    page = f"{constants.ENDPOINT}/datasets/{wanted.repo}"
    revision = f'revision "{wanted.revision}"'
    try:
        yield
    except errors.GatedRepoError:  # a kind of RepositoryNotFoundError, so it comes first
        if get_token() is None:
            raise wanted.fault(
                "its owner asks for an agreement first, and there is no token that tells who you are",
                todo=f"Log in at {page} and accept its conditions, make a token with read access at "
                f"{constants.ENDPOINT}/settings/tokens, and set it: export HF_TOKEN=...",
            ) from None
        raise wanted.fault(
            "its owner has not given access to the account of your token",
            todo=f"Accept its conditions at {page} with that account (some owners answer by hand), and give a "
            "fine-grained token access to gated repositories",
        ) from None
    except errors.RevisionNotFoundError:
        raise wanted.fault(
            "there is no such revision", revision, todo=f"Write one of {page}/commits/main"
        ) from None
    except errors.RepositoryNotFoundError:
        raise wanted.fault(
            "there is no such data set, or it is private",
            todo="Correct the name, or set HF_TOKEN to a token of an account that may read it",
        ) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status == 401:
            raise wanted.fault(
                "the hub does not know your token",
                todo=f"Make another at {constants.ENDPOINT}/settings/tokens and set HF_TOKEN to it, or unset it",
            ) from None
        raise wanted.fault(
            "the hub refuses the request", found=f"status {status}", todo=f"See whether {page} opens"
        ) from None
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError) as error:
        if _is_offline():
            raise wanted.fault(
                "it is not whole in the cache, and HF_HUB_OFFLINE forbids to fetch the rest",
                revision,
                todo=_ONLINE,
            ) from None
        raise _strange(wanted, error) from None
    except _GaveUpError as error:
        raise wanted.fault(
            _OUT_OF_REACH,
            found=str(error),
            todo="Run it again later: what has been fetched is kept. More patience: hub: {tries: N, wait: SECONDS}",
        ) from None
    except (httpx2.HTTPError, ValueError) as error:
        raise _strange(wanted, error) from None
    except OSError as error:
        raise _unwritten(wanted, error) from None


def _unwritten(wanted: DataSet, error: OSError) -> InputError:
    """Return the fault of a file that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    reason = error.strerror or (str(error) or type(error).__name__).splitlines()[0]
    return wanted.fault(
        "it cannot be written",
        found=reason if full or error.filename is None else f"{reason}: {error.filename}",
        todo="Make room"
        if full
        else "Take away what stands in its place, or see that the results folder and HF_HOME can be written to",
    )


@contextmanager
def _understood(wanted: DataSet) -> Iterator[None]:
    """Tell an answer that the client cannot make sense of.

    Raises
    ------
    InputError
        If it is no JSON, or not what a hub answers.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _strange(wanted, error) from None


def _strange(wanted: DataSet, error: Exception) -> InputError:
    """Return the fault of an answer that no hub gives."""
    lacks = f"an answer without {error}" if isinstance(error, KeyError) else str(error)
    return wanted.fault(
        "the answer is not that of a hub",
        found=(lacks or type(error).__name__).splitlines()[0],
        todo="Check HF_ENDPOINT if it is set, and whether a proxy or a login page stands in between",
    )


# -- what there is ------------------------------------------------------------------------------------------


def _remembered(wanted: DataSet, name: str) -> Path:
    """Return where something about a data set is remembered, in the client's cache for libraries.

    Raises
    ------
    InputError
        If there is no such folder, and none can be made.
    """
    from huggingface_hub import cached_assets_path

    try:
        return cached_assets_path("benchmirt", namespace=wanted.repo, subfolder="hub") / f"{name}.json"
    except (OSError, ValueError) as error:  # the client raises the second where a file stands in the way
        raise _unwritten(wanted, error if isinstance(error, OSError) else OSError(str(error))) from None


def _is_offline() -> bool:
    from huggingface_hub import constants

    return constants.is_offline_mode()


def _commit(wanted: DataSet, tell: bool = True) -> str:
    """Return the commit of a revision, offline the one that it was last; warn of one that may move, if asked to tell."""
    if wanted.pinned:
        return wanted.revision
    from huggingface_hub import HfApi

    note = _remembered(wanted, f"revision-{slug(wanted.revision)}")
    if _is_offline():
        if not note.is_file():
            raise wanted.fault(
                "which commit this is was never asked, and HF_HUB_OFFLINE forbids to ask",
                f'revision "{wanted.revision}"',
                todo=_ONLINE,
            )
        commit = str(read_json(note)["commit"])
    else:
        with _understood(wanted):
            commit = str(HfApi().dataset_info(wanted.repo, revision=wanted.revision).sha)
        write_json({"commit": commit}, note)
    if not tell:
        return commit
    _log.warning(
        '%s: revision "%s" is not pinned: it is %s %s, and may be another commit next time; to keep this one, write '
        "revision: %s",
        wanted.repo,
        wanted.revision,
        commit,
        "in the cache" if _is_offline() else "now",
        commit,
    )
    return commit


def _listing(wanted: DataSet, commit: str) -> dict[str, _Listed]:
    """Return the files of a commit by name, from the hub once and then from memory, since it never changes."""
    from huggingface_hub import HfApi, RepoFile

    note = _remembered(wanted, f"files-{commit}")
    if note.is_file():
        return {name: _Listed(**entry) for name, entry in read_json(note).items()}
    if _is_offline():
        raise wanted.fault(
            "this revision was never fetched, and HF_HUB_OFFLINE forbids to fetch it",
            f'revision "{commit}"',
            todo=_ONLINE,
        )
    with _understood(wanted):
        tree = HfApi().list_repo_tree(wanted.repo, recursive=True, revision=commit, repo_type="dataset")
        found = {
            entry.path: _Listed(entry.size, entry.lfs.sha256 if entry.lfs else None, entry.blob_id)
            for entry in tree
            if isinstance(entry, RepoFile)
        }
    write_json({name: vars(entry) for name, entry in found.items()}, note)
    return found


def _chosen(wanted: DataSet, listing: Mapping[str, _Listed]) -> list[str]:
    """Return the names of the files to fetch.

    Raises
    ------
    InputError
        If a pattern or a file with a hash is not there, if nothing is, or if a name leads out of the folder.
    """
    for name in listing:
        if _leads_out(name):
            raise wanted.fault("the name of a file leads out of its folder", found=ascii(name))
    if wanted.files:
        for pattern in wanted.files:
            if not any(fnmatchcase(name, pattern) for name in listing):
                raise _missing(wanted, pattern, listing)
        names = [name for name in listing if any(fnmatchcase(name, one) for one in wanted.files)]
    else:
        names = [name for name in listing if not _is_aside(name)]
    for name in wanted.sha256 or {}:
        if name not in names:
            raise _missing(wanted, name, names)
    if not names:
        raise wanted.fault("there is no file in it", found=", ".join(listing) or "nothing")
    return sorted(names)


def _is_aside(name: str) -> bool:
    """Say whether a file is hidden, or a part of the data card."""
    return name in _CARD or any(part.startswith(".") for part in name.split("/"))


def _leads_out(name: str) -> bool:
    parts = name.split("/")
    return (
        posixpath.isabs(name) or not name.isprintable() or "\\" in name or bool({"", ".", ".."} & set(parts))
    )


def _missing(wanted: DataSet, name: str, names: Mapping[str, Any] | Sequence[str]) -> InputError:
    near = nearest(name, names)
    shown = [one for one in names if not _is_aside(one)]
    return wanted.fault(
        "there is no such file",
        f'file "{name}"',
        found=", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "") if shown else "no file",
        todo=f'Did you mean "{near}"?' if near else "Name one of these",
    )


# -- the files ----------------------------------------------------------------------------------------------


def _verified(
    wanted: DataSet, commit: str, name: str, listed: _Listed, patience: Patience
) -> tuple[Path, str]:
    """Return where a file is in the cache, and its SHA-256, after a look at its hash.

    A file that is not what the hub lists was damaged on its way or in the cache, and is fetched once more.

    Raises
    ------
    InputError
        If it is damaged again, or has not the hash that the study asks for.
    """
    path = _cached(wanted, commit, name, patience)
    digest = sha256_of(path)
    if not _is_listed(path, digest, listed) and not _is_offline():
        _log.warning("%s: %s is damaged; it is fetched again", wanted.repo, name)
        path = _cached(wanted, commit, name, patience, again=True)
        digest = sha256_of(path)
    if not _is_listed(path, digest, listed):
        size = path.stat().st_size
        _forget(path)
        raise wanted.fault(
            "the file is not the one that the hub lists, so it was damaged on its way or in the cache",
            f'file "{name}"',
            found=f"{size} bytes with SHA-256 {digest}",
            expected=f"{listed.size} bytes" + (f" with SHA-256 {listed.sha256}" if listed.sha256 else ""),
            todo=_ONLINE
            if _is_offline()
            else "Run it again; if that does not help, a proxy may change files",
        )
    asked = (wanted.sha256 or {}).get(name, digest)
    if asked != digest:
        raise wanted.fault(
            "the file has another hash than the study asks for",
            f'file "{name}"',
            found=f"SHA-256 {digest}",
            expected=asked,
            todo="Name the revision that the hash belongs to, or correct the hash if this file is the right one",
        )
    return path, digest


def _cached(wanted: DataSet, commit: str, name: str, patience: Patience, again: bool = False) -> Path:
    """Return where the client keeps a file, fetched if need be."""
    import httpx2
    from huggingface_hub import errors, hf_hub_download

    attempt = 0
    while True:
        attempt += 1
        try:
            path = hf_hub_download(
                wanted.repo, name, repo_type="dataset", revision=commit, force_download=again
            )
        except errors.RemoteEntryNotFoundError:
            raise _gone(wanted, name) from None
        except httpx2.TransportError as error:  # the connection broke, and the client could not go on
            _wait(
                patience, attempt, f"cut off ({str(error) or type(error).__name__})", f"{wanted.repo}/{name}"
            )
            continue
        if commit not in Path(path).parts:
            raise wanted.fault(
                "the hub answered with another revision",
                f'file "{name}"',
                found=Path(path).parts[-1 - name.count("/") - 1],
                expected=commit,
                todo="Run it again; if that does not help, the mirror at HF_ENDPOINT is not up to date",
            )
        return Path(path)


def _gone(wanted: DataSet, name: str) -> InputError:
    return wanted.fault(
        "the hub lists this file but does not have it",
        f'file "{name}"',
        todo="Ask its owner, or name another revision",
    )


def _is_listed(path: Path, digest: str, listed: _Listed) -> bool:
    """Say whether a file has the size and the hash that the hub lists."""
    if path.stat().st_size != listed.size:
        return False
    return digest == listed.sha256 if listed.sha256 else _git_hash(path) == listed.git


def _git_hash(path: Path) -> str:
    """Return git's hash of a file's content: SHA-1 of ``blob SIZE`` and a zero byte, then the content."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _forget(path: Path) -> None:
    """Remove a damaged file from the cache, so that no later run takes it for good."""
    blob = path.resolve()
    path.unlink()
    blob.unlink(missing_ok=True)


def _place(path: Path, target: Path) -> None:
    """Put a file of the cache into its place, without a second copy where the file system allows it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path.resolve(), target)
    except OSError:
        shutil.copyfile(path, target)
