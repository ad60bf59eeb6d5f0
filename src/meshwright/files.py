"""Reading text files that a user names, with their mistakes turned into messages."""

from __future__ import annotations

import stat
from pathlib import Path

from meshwright.errors import FileError
from meshwright.units import format_bytes


def read_text(path: str | Path, *, limit_bytes: int, kind: str) -> str:
    """The text of a UTF-8 file of at most ``limit_bytes``.

    Args:
        path: of a regular file.
        limit_bytes: a larger file is refused before it is read.
        kind: what the file should be, in words for the messages ("model description").

    Raises:
        FileError: the file is missing, not a regular file, unreadable, too large, or not
            UTF-8.
    """
    path = Path(path)
    where = _shown(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileError(
                f"the {kind} is {_what_it_is(status.st_mode)}",
                where=where,
                allowed="a regular file",
                fix="give the path of the file itself",
            )
        if status.st_size > limit_bytes:
            raise _too_large(kind, where, format_bytes(status.st_size), limit_bytes)
        with path.open("rb") as stream:
            content = stream.read(limit_bytes + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(error, kind, where) from None
    if len(content) > limit_bytes:
        raise _too_large(kind, where, "larger", limit_bytes)
    return _decoded(content, kind, where)


def _shown(path: Path) -> str:
    """The path, cut in the middle when it is longer than a screen line or two."""
    text = str(path)
    if not text.isprintable():
        text = repr(text)
    return text if len(text) <= 300 else f"{text[:140]}...{text[-140:]}"


def _decoded(content: bytes, kind: str, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            f"the {kind} is not UTF-8 text (byte {error.start})",
            where=where,
            allowed="a UTF-8 text file",
            fix="check that it is the right file, and save it as UTF-8",
        ) from None


def _too_large(kind: str, where: str, size: str, limit_bytes: int) -> FileError:
    return FileError(
        f"the {kind} is too large ({size})",
        where=where,
        allowed=f"at most {format_bytes(limit_bytes)}",
        fix="check the path: this looks like another kind of file",
    )


def _what_it_is(mode: int) -> str:
    return "a directory" if stat.S_ISDIR(mode) else "not a regular file"


def _unreadable(error: OSError | ValueError, kind: str, where: str) -> FileError:
    """A path that cannot be opened (``ValueError``: it holds a null byte)."""
    if isinstance(error, FileNotFoundError):
        return FileError(f"there is no such {kind}", where=where, fix="check the path")
    if isinstance(error, PermissionError):
        return FileError(
            f"the {kind} may not be read", where=where, fix="check the file's permissions"
        )
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return FileError(f"the {kind} cannot be read: {reason}", where=where, fix="check the path")
