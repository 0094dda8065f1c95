#!/usr/bin/env bash
# A development certificate authority and a server certificate for this machine, in DIR: ca.pem, server.pem, server.key.
#   certificates.sh DIR      does nothing when they are there
set -euo pipefail
dir=${1:?DIR is missing}
[ -f "$dir/server.pem" ] && exit 0
mkdir -p "$dir"
cd "$dir"
umask 077
openssl ecparam -name prime256v1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -days 3650 -subj "/CN=MSS development CA" -out ca.pem
openssl ecparam -name prime256v1 -genkey -noout -out server.key
openssl req -new -key server.key -subj "/CN=localhost" -out server.csr
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\nextendedKeyUsage=serverAuth\n' > server.ext
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 -extfile server.ext \
    -out server.pem 2> openssl.log || { cat openssl.log >&2; exit 70; }
rm -f server.csr server.ext openssl.log
chmod 644 ca.pem server.pem
