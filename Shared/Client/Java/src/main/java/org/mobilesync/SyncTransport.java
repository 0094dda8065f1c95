package org.mobilesync;

/** How frames travel to the gateway (DeviceProtocol.md, Transport). Both use TLS and the same port. */
public enum SyncTransport {
    /** Frames directly over TLS, with the ALPN name {@code mss/1}. */
    PLAIN,
    /** Frames in binary messages of a WebSocket (RFC 6455), for networks that let only HTTP through. */
    WEB_SOCKET
}
