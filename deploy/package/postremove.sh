#!/bin/sh
# Runs after the package was removed. The database in /var/lib/ledgerd stays.
set -e

if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
