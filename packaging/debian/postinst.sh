#!/bin/sh
set -e
case "$1" in
configure | "")
	if ! getent passwd guidon >/dev/null; then
		adduser --system --group --home /var/lib/guidon --no-create-home --quiet guidon
	fi
	chown root:guidon /etc/guidon/guidon.yaml /etc/default/guidon
	chmod 0640 /etc/guidon/guidon.yaml /etc/default/guidon
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		if systemctl is-active --quiet guidon; then
			systemctl restart guidon
		else
			echo "guidon: start it with: systemctl enable --now guidon"
			echo "guidon: the keys of the first start are in: journalctl -u guidon"
		fi
	fi
	;;
esac
