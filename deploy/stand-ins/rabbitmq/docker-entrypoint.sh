#!/bin/bash
# A stand-in for the entrypoint of the official image rabbitmq: it serves as the image's user.
set -euo pipefail
echo "a stand-in for the image rabbitmq: $(dpkg-query -W -f '${Version}' rabbitmq-server)" >&2
chown rabbitmq:rabbitmq /var/lib/rabbitmq
servers=(/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin)
exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "${servers[-1]}/$1"
