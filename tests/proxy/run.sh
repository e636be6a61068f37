#!/bin/sh
# Puts Debian's nginx before a server without tokens, which must refuse what nginx passes on.
#
# Installs nginx with apt-get where it is missing and may be installed; says so and ends well where it may not.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../bough.sh"
find_nginx
if [ -z "$NGINX" ]; then
    echo "nginx is not here and cannot be installed: nothing was tested"
    exit 0
fi
PATH="$PATH:/usr/sbin"
python_with "pytest==9.0.2"
exec "$python" -m pytest -q -p no:cacheprovider "$here"
