"""Files and folders wherever Spark can reach them: a disk, HDFS, an object store. Written once, by Hadoop's own client.

A *place* is a path of the driver's disk (`/var/report`) or an address (`s3a://bucket/report`), taken literally;
only `matching` knows wildcards. What comes back is spelled alike: absolute paths without `file:`, addresses with their
scheme.

What layers of files may build on:

- `write_text` on a disk and in an object store: a reader finds the old text or the new one, never half of it.
- `create_text`: of several that make the same file one is told that it did (see there where that holds).
- `rename` of a folder is one step on a disk and in HDFS only. An object store copies file after file, then deletes; if
  that is killed, both are there in part. So what counts is best told by one small file that is written last.
- `entries` and `files` see what was written, renamed or deleted before them.
- Folders of an object store are names with a slash: one without any file may be there or not.

Every method raises `ReportError` with the place and the store's own words: no access, no such bucket, no client for
the scheme.
"""

import os.path
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from proxy.reports.files import ReportError, as_spark_path, finished, is_log, is_readable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = TypeVar("Answer")

BESIDE = ".part"
"""Ends the name of a text that is being written on a disk; its name begins with a dot, so Spark reads none."""

_ONLY_NEW = "fs.option.create.conditional.overwrite"
"""Asks for a file that appears when it is closed, if there is none then; who does not know it looks at the start."""


class Entry(NamedTuple):
    """A file or a folder that was found."""

    place: str
    is_folder: bool
    size: int
    """Bytes; 0 of a folder."""
    changed_ms: int
    """Milliseconds since 1970; of a folder in an object store it means nothing."""


def is_address(place: str) -> bool:
    """Return whether a place is an address, not a path of the driver's disk."""
    return "://" in place


def written_to(place: str) -> str:
    """Return a place as Spark's writers take it; its readers also want wildcards escaped (`files.as_spark_path`)."""
    return place if is_address(place) else f"file://{os.path.abspath(place)}"  # noqa: PTH100 - Java runs elsewhere


def join(place: str, *names: str) -> str:
    """Return the place of a name, or of names one in the other, in a folder."""
    return "/".join((place.rstrip("/"), *names))


class Places:
    """The file systems of a session, with its access (`spark.hadoop.fs.s3a.*`). Threads may share it."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        context: Any = spark.sparkContext
        hadoop = context._jvm.org.apache.hadoop.fs  # noqa: SLF001 - PySpark has no other way to it
        self._settings = context._jsc.hadoopConfiguration()  # noqa: SLF001 - likewise
        # Once: each name of Java's is a question to it, and so is each call.
        self._as_path = hadoop.Path
        # Without the checksums that Hadoop hides beside each file of a disk: nobody else there keeps them.
        self._disk = hadoop.FileSystem.getLocal(self._settings).getRaw()

    def exists(self, place: str) -> bool:
        """Return whether there is a file or a folder."""
        return self._ask(place, lambda system, path: bool(system.exists(path)))

    def entries(self, place: str) -> list[Entry]:
        """Return what is directly in a folder, by place: a file's own entry for a file, nothing for what is absent."""
        return self._ask(place, lambda system, path: _sorted(system.listStatus(path)) if system.exists(path) else [])

    def files(self, place: str) -> list[Entry]:
        """Return every file of a folder at any depth, by place: a file's own entry, nothing for what is absent."""

        def listed(system: Any, path: Any) -> list[Entry]:
            if not system.exists(path):
                return []
            found, more = [], system.listFiles(path, True)  # noqa: FBT003 - Java names no arguments
            while more.hasNext():
                found.append(more.next())
            return _sorted(found)

        return self._ask(place, listed)

    def matching(self, pattern: str) -> list[str]:
        """Return the files and folders whose places match a pattern of Hadoop's: `*`, `?`, `[a-c]`, `{a,b}`."""
        return self._ask(pattern, lambda system, path: [one.place for one in _sorted(system.globStatus(path) or ())])

    def is_readable(self, place: str) -> bool:
        """Return whether a file can be read to its end: it still exists, and what is compressed is whole."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        if not is_address(place):
            return is_readable(place)
        try:
            self._spark.read.text(as_spark_path(place)).count()
        except (PySparkException, Py4JError):
            return False
        return True

    def delete(self, place: str) -> None:
        """Delete a file, or a folder with all that is in it; nothing happens if there is none."""
        self._ask(place, lambda system, path: system.delete(path, True))  # noqa: FBT003 - and all in it

    def rename(self, place: str, to: str) -> None:
        """Rename a file or folder within its store. Raises `ReportError` also if `to` exists, or `place` does not."""

        def renamed(system: Any, path: Any) -> None:
            target = self._path(to)
            if not system.exists(path):
                raise ReportError(f"{place}: no such file or folder")
            if system.exists(target):
                raise ReportError(f"{place} can't be renamed: {to} exists")
            system.mkdirs(target.getParent())  # a disk's would be copied into a folder that is not there
            if not system.rename(path, target):
                raise ReportError(f"{place} can't be renamed to {to}")

        self._ask(place, renamed)

    def read_text(self, place: str) -> str:
        """Return the text of a small file (UTF-8). Raises `ReportError` also if there is none."""

        def read(system: Any, path: Any) -> bytes:
            stream = system.open(path)
            try:
                content: bytes = stream.readAllBytes()
            finally:
                stream.close()
            return content

        return self._ask(place, read).decode()

    def write_text(self, place: str, text: str) -> None:
        """Write a small file (UTF-8) whole, in place of one that may be there; its folders are made."""

        def written(system: Any, path: Any) -> None:
            if system.getUri().getScheme() != "file":  # appears when it is closed
                _write(system, path, text.encode())
                return
            beside = self._as_path(path.getParent(), f".{path.getName()}{BESIDE}")
            _write(system, beside, text.encode())
            if not system.rename(beside, path):
                raise ReportError(f"{place} can't be written")

        self._ask(place, written)

    def create_text(self, place: str, text: str) -> bool:
        """Write a small file (UTF-8) where none is; return whether it was this call that made it.

        Of several at a time one makes it: in HDFS and in stores that know conditional writes (S3 since 2024, as
        `hadoop-aws` 3.4.2 and newer asks for them). Elsewhere two in the same instant may both believe that they did.
        """
        from py4j.protocol import Py4JJavaError

        def created(system: Any, path: Any) -> bool:
            builder = system.createFile(path).recursive().overwrite(False)  # noqa: FBT003 - Java names no arguments
            try:
                stream = builder.opt(_ONLY_NEW, "true").build()
                try:
                    stream.write(text.encode())
                finally:
                    stream.close()
            except Py4JJavaError:  # of many kinds; also if an answer was lost and it was asked for twice
                if not system.exists(path):
                    raise
                return self.read_text(place) == text
            return True

        return self._ask(place, created)

    def upload(self, file: Path, place: str) -> None:
        """Copy a file of this machine to a place, over one that may be there."""
        self._ask(place, lambda system, path: system.copyFromLocalFile(False, True, self._path(str(file)), path))  # noqa: FBT003 - keep the source, replace the target

    def _path(self, place: str) -> Any:
        return self._as_path(place if is_address(place) else os.path.abspath(place))  # noqa: PTH100 - Java runs elsewhere

    def _ask(self, place: str, question: Callable[[Any, Any], Answer]) -> Answer:
        """Ask the file system of a place; it and the place as a path of it are handed over."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            path = self._path(place)
            if path.toUri().getScheme() not in {None, "file"}:
                return question(path.getFileSystem(self._settings), path)
            return question(self._disk, path)
        except Py4JJavaError as error:
            raise ReportError(f"{place}: {_said(error.java_exception)}") from error
        except PySparkException as error:  # PySpark's own word for some of Java's
            raise ReportError(f"{place}: {str(error).strip().splitlines()[0]}") from error


def looked_up(files: Sequence[str], places: Places) -> list[str]:
    """Return the files with those that are found at the addresses among them instead, chosen as `files.log_files` does.

    An address may hold wildcards, which no shell resolves there (`s3a://bucket/logs/2026-11-*`). Raises `ReportError`
    as that does, and whatever the store says.
    """
    found: set[str] = set()
    for name in files:
        if not is_address(name):
            found.add(name)
            continue
        roots = [name] if places.exists(name) else places.matching(name)
        if not roots:
            raise ReportError(f"{name}: no such file or folder")
        for root in roots:
            every = [entry.place for entry in places.files(root)]
            itself = root.removeprefix("file://").rstrip("/")  # a file that was named is taken, whatever its name
            found.update(place for place in every if place == itself or is_log(place))
    return finished(found, files)


def _write(system: Any, path: Any, content: bytes) -> None:
    stream = system.create(path, True)  # noqa: FBT003 - over what is there
    try:
        stream.write(content)
    finally:
        stream.close()


def _sorted(found: Iterable[Any]) -> list[Entry]:
    return sorted(
        Entry(_spelled(one.getPath()), bool(one.isDirectory()), int(one.getLen()), int(one.getModificationTime()))
        for one in found
    )


def _spelled(path: Any) -> str:
    uri = path.toUri()
    return str(uri.getPath() if uri.getScheme() == "file" else path.toString())


def _said(error: Any) -> str:
    """Return a Java exception as one line."""
    kind = str(error.getClass().getSimpleName())
    words = str(error.getMessage() or "").strip()
    return f"{kind}: {words.splitlines()[0]}" if words else kind
