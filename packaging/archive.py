"""Packs a folder so that the same files give the same bytes: `archive.py FOLDER ARCHIVE`, a .tar.gz or a .zip."""

import gzip
import pathlib
import sys
import tarfile
import zipfile

# The earliest time that both formats can say.
TIME = (1980, 1, 1, 0, 0, 0)
SECONDS = 315532800


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = SECONDS
    return member


def main(folder: pathlib.Path, archive: pathlib.Path) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    names = [path.relative_to(folder.parent).as_posix() for path in files]
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for path, name in zip(files, names):
                packed.writestr(zipfile.ZipInfo(name, TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
        return
    with gzip.GzipFile(archive, "wb", compresslevel=6, mtime=SECONDS) as zipped, tarfile.open(fileobj=zipped, mode="w") as packed:
        for path, name in zip(files, names):
            packed.add(path, name, filter=plain)


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
