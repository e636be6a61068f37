#!/bin/sh
# Runs the feature files on the service and over the bus.
set -eu
cd "$(dirname "$0")"
exec cargo test --quiet --locked
