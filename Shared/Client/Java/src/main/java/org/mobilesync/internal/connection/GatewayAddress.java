package org.mobilesync.internal.connection;

/** The host and port of a gateway. */
public final class GatewayAddress {
    private static final int HIGHEST_PORT = 65_535;

    private final String host;
    private final int port;

    /** Creates an address. */
    public GatewayAddress(String host, int port) {
        this.host = host;
        this.port = port;
    }

    /** Reads {@code host:port} of a Close frame, with an IPv6 address in brackets. Returns null for any other form. */
    public static GatewayAddress parse(String text) {
        int colon = text.lastIndexOf(':');
        if (colon <= 0) return null;
        String host = text.substring(0, colon);
        if (host.startsWith("[") && host.endsWith("]")) host = host.substring(1, host.length() - 1);
        try {
            int port = Integer.parseInt(text.substring(colon + 1));
            return host.isEmpty() || port < 1 || port > HIGHEST_PORT ? null : new GatewayAddress(host, port);
        } catch (NumberFormatException error) {
            return null;
        }
    }

    /** Returns the host name or address, without brackets. */
    public String host() {
        return host;
    }

    /** Returns the port. */
    public int port() {
        return port;
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
