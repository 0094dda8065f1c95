package org.mobilesync.internal.network;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.Locale;
import org.mobilesync.internal.connection.GatewayAddress;

/**
 * The client's side of a WebSocket (RFC 6455) with the sub-protocol {@code mss.1}: two streams of bytes, carried by
 * binary messages (DeviceProtocol.md, Transport).
 */
final class WebSocket {
    /** The most bytes of a frame's payload from a device. */
    private static final int MAX_SENT_BYTES = 65_540;
    /** The most bytes of a control frame's payload (RFC 6455 section 5.5). */
    private static final int MAX_CONTROL_BYTES = 125;
    private static final int MAX_HEADER_BYTES = 8_192;
    private static final String PATH = "/mss/1";
    private static final String PROTOCOL = "mss.1";
    private static final String ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    private static final int CONTINUATION = 0;
    private static final int TEXT = 1;
    private static final int BINARY = 2;
    private static final int CLOSE = 8;
    private static final int PING = 9;
    private static final int PONG = 10;
    /** The gateway sent what this sub-protocol forbids, such as a text message. */
    private static final int UNSUPPORTED = 1003;

    private final InputStream in;
    private final OutputStream out;
    private final SecureRandom random = new SecureRandom();

    WebSocket(InputStream in, OutputStream out) {
        this.in = in;
        this.out = out;
    }

    /** Performs the opening handshake. */
    void open(GatewayAddress address) throws IOException {
        byte[] nonce = new byte[16];
        random.nextBytes(nonce);
        String key = Base64.getEncoder().encodeToString(nonce);
        String host = address.host().indexOf(':') >= 0 ? "[" + address.host() + "]" : address.host();
        String request = "GET " + PATH + " HTTP/1.1\r\nHost: " + host + ":" + address.port()
            + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key
            + "\r\nSec-WebSocket-Protocol: " + PROTOCOL + "\r\n\r\n";
        out.write(request.getBytes(StandardCharsets.US_ASCII));
        out.flush();
        String[] lines = readHeader().split("\r\n");
        if (!lines[0].startsWith("HTTP/1.1 101")) {
            throw new IOException("the gateway refused the WebSocket (" + lines[0] + "); check host and port");
        }
        boolean isAccepted = header(lines, "Sec-WebSocket-Accept").equals(accept(key));
        if (!isAccepted || !header(lines, "Sec-WebSocket-Protocol").equals(PROTOCOL)) {
            throw new IOException(
                "the answer to the WebSocket's handshake is not one of a gateway; check host and port");
        }
    }

    private String readHeader() throws IOException {
        ByteArrayOutputStream header = new ByteArrayOutputStream();
        int matched = 0;
        while (matched < 4) {
            int next = in.read();
            if (next < 0) throw new EOFException("the gateway ended the connection within the WebSocket's handshake");
            header.write(next);
            if (header.size() > MAX_HEADER_BYTES) throw new IOException("the WebSocket's handshake is too long");
            matched = next == "\r\n\r\n".charAt(matched) ? matched + 1 : next == '\r' ? 1 : 0;
        }
        return header.toString("ISO-8859-1");
    }

    private static String header(String[] lines, String name) {
        String start = name.toLowerCase(Locale.ROOT) + ":";
        for (String line : lines) {
            if (line.toLowerCase(Locale.ROOT).startsWith(start)) return line.substring(start.length()).trim();
        }
        return "";
    }

    private static String accept(String key) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-1")
                .digest((key + ACCEPT_SUFFIX).getBytes(StandardCharsets.US_ASCII));
            return Base64.getEncoder().encodeToString(digest);
        } catch (NoSuchAlgorithmException error) {
            // Every Java platform has SHA-1 (java.security documentation, required algorithms).
            throw new IllegalStateException("this platform has no SHA-1", error);
        }
    }

    /** Returns the payloads of the gateway's binary messages as one stream. Pings are answered. */
    InputStream input() {
        return new Input();
    }

    /** Returns a stream whose writes become binary messages. */
    OutputStream output() {
        return new OutputStream() {
            @Override
            public void write(int value) throws IOException {
                write(new byte[] {(byte) value}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int offset, int length) throws IOException {
                for (int sent = 0; sent < length; sent += MAX_SENT_BYTES) {
                    send(BINARY, bytes, offset + sent, Math.min(length - sent, MAX_SENT_BYTES));
                }
            }

            @Override
            public void flush() throws IOException {
                out.flush();
            }
        };
    }

    /** Sends the closing handshake with a status code. */
    void sendClose(int code) throws IOException {
        send(CLOSE, new byte[] {(byte) (code >>> 8), (byte) code}, 0, 2);
    }

    /** Writes one masked frame. The reader answers pings while the writer writes, so one frame is written at a time. */
    private synchronized void send(int opcode, byte[] bytes, int offset, int length) throws IOException {
        ByteArrayOutputStream frame = new ByteArrayOutputStream(length + 14);
        frame.write(0x80 | opcode);
        if (length < 126) {
            frame.write(0x80 | length);
        } else if (length < 65_536) {
            frame.write(0x80 | 126);
            frame.write(length >>> 8);
            frame.write(length);
        } else {
            frame.write(0x80 | 127);
            for (int shift = 56; shift >= 0; shift -= 8) frame.write((int) ((long) length >>> shift));
        }
        byte[] mask = new byte[4];
        random.nextBytes(mask);
        frame.write(mask, 0, mask.length);
        for (int index = 0; index < length; index++) frame.write(bytes[offset + index] ^ mask[index & 3]);
        frame.writeTo(out);
        out.flush();
    }

    private final class Input extends InputStream {
        /** The bytes of the present data frame that were not read yet. */
        private long left;
        private boolean isEnded;

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            if (length == 0) return 0;
            while (left == 0 && !isEnded) readFrameHeader();
            if (isEnded) return -1;
            int count = in.read(bytes, offset, (int) Math.min(length, left));
            if (count > 0) left -= count;
            return count;
        }

        private void readFrameHeader() throws IOException {
            int first = in.read();
            if (first < 0) {
                isEnded = true;
                return;
            }
            int second = required();
            int opcode = first & 0x0f;
            long length = second & 0x7f;
            int extra = length == 126 ? 2 : length == 127 ? 8 : 0;
            if (extra > 0) length = 0;
            for (int index = 0; index < extra; index++) length = length << 8 | required();
            if ((second & 0x80) != 0 || (first & 0x70) != 0 || length < 0) {
                throw new IOException("the gateway sent an invalid WebSocket frame");
            }
            if (opcode >= CLOSE) {
                control(opcode, length);
            } else if (opcode == BINARY || opcode == CONTINUATION) {
                left = length;
            } else {
                if (opcode == TEXT) sendClose(UNSUPPORTED);
                throw new IOException("the gateway sent a WebSocket message that is not binary");
            }
        }

        private void control(int opcode, long length) throws IOException {
            if (length > MAX_CONTROL_BYTES) throw new IOException("the gateway sent an invalid WebSocket frame");
            byte[] payload = new byte[(int) length];
            for (int index = 0; index < payload.length; index++) payload[index] = (byte) required();
            if (opcode == PING) send(PONG, payload, 0, payload.length);
            if (opcode != CLOSE) return;
            send(CLOSE, payload, 0, Math.min(payload.length, 2));
            isEnded = true;
        }

        private int required() throws IOException {
            int next = in.read();
            if (next < 0) throw new EOFException("the gateway ended the connection within a WebSocket frame");
            return next;
        }
    }
}
