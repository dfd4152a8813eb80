#!/bin/sh
# Runs before the package is removed: $1 is remove (deb) or 0 (rpm). Other values are upgrades.
set -e

if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
	systemctl disable --now ledgerd.service
fi
