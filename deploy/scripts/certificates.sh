#!/usr/bin/env bash
# A development certificate authority and its server certificates for this machine, in DIR: ca.pem, and a pair NAME.pem,
# NAME.key each for server (devices and HTTPS), rabbitmq and postgres. For development only: the authority's key lies
# beside them.
#   certificates.sh DIR [NAME…]     makes those that are not there; NAME is a further one of the servers' machines, as
#                                   openssl writes it, for example IP:10.0.0.1
set -euo pipefail
dir=${1:?DIR is missing}
further=''
for name in "${@:2}"; do further+=",$name"; done
mkdir -p "$dir"
cd "$dir"
umask 077
trap 'rm -f ./*.csr ./*.ext ./*.new' EXIT
if [ ! -f ca.pem ]; then
    openssl ecparam -name prime256v1 -genkey -noout -out ca.key
    openssl req -x509 -new -key ca.key -days 3650 -subj "/CN=MSS development CA" -out ca.new
    mv ca.new ca.pem # it counts as made once it is whole
fi
for name in server rabbitmq postgres; do
    [ ! -f "$name.pem" ] || continue
    openssl ecparam -name prime256v1 -genkey -noout -out "$name.key"
    openssl req -new -key "$name.key" -subj "/CN=$name" -out "$name.csr"
    # The second name is the container's.
    printf 'subjectAltName=DNS:localhost,DNS:%s,IP:127.0.0.1,IP:::1%s\nextendedKeyUsage=serverAuth\n' \
        "$name" "$further" > "$name.ext"
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 -extfile "$name.ext" \
        -out "$name.new" 2> openssl.log || { cat openssl.log >&2; exit 70; }
    rm -f openssl.log
    mv "$name.new" "$name.pem"
done
chmod 644 ./*.pem
