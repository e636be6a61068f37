#!/bin/sh
# Puts Debian's nginx before a server without tokens, which must refuse what nginx passes on.
#
# Installs nginx with apt-get where it is missing.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
find_nginx
PATH="$PATH:/usr/sbin"
python_with "pytest==9.0.2"
exec "$python" -m pytest -q -p no:cacheprovider "$here"
