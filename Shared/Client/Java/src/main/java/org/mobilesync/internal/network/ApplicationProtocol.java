package org.mobilesync.internal.network;

import javax.net.ssl.SSLParameters;

/** The protocol's name in the TLS handshake (ALPN, RFC 7301). */
final class ApplicationProtocol {
    private ApplicationProtocol() {}

    /**
     * Offers a protocol. Android below 10 has no ALPN for sockets; there the handshake offers none, and the gateway
     * recognises frames by their first byte (DeviceProtocol.md, Transport).
     */
    static void offer(String name, SSLParameters parameters) {
        try {
            parameters.setApplicationProtocols(new String[] {name});
        } catch (NoSuchMethodError error) {
            // See above: the connection works without it.
        }
    }
}
