#!/bin/sh
# Runs after the package was installed: $1 is configure (deb), or how many versions are
# installed now (rpm). $2 is the version before, if there was one (deb). dpkg sets DPKG_ROOT
# if it installs into a folder.
set -e

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers --root="${DPKG_ROOT:-/}" ledgerd.conf
	systemd-tmpfiles --root="${DPKG_ROOT:-/}" --create ledgerd.conf
else
	id ledgerd >/dev/null 2>&1 ||
		useradd --system --user-group --home-dir /var/lib/ledgerd --shell /usr/sbin/nologin ledgerd
	chgrp ledgerd /etc/ledgerd/config.yaml
fi

if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = 2 ] || [ -n "$2" ]; then
		systemctl try-restart ledgerd.service
	fi
fi
