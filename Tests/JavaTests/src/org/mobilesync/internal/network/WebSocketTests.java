package org.mobilesync.internal.network;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import org.junit.jupiter.api.Test;
import org.mobilesync.internal.connection.GatewayAddress;

/** The client's side of RFC 6455. */
class WebSocketTests {
    private static final GatewayAddress ADDRESS = new GatewayAddress("gateway.example", 443);

    private final ByteArrayOutputStream sent = new ByteArrayOutputStream();

    private WebSocket reading(int... bytes) {
        byte[] input = new byte[bytes.length];
        for (int index = 0; index < bytes.length; index++) input[index] = (byte) bytes[index];
        return new WebSocket(new ByteArrayInputStream(input), sent);
    }

    private static String accept(String key) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-1")
            .digest((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").getBytes(StandardCharsets.US_ASCII));
        return Base64.getEncoder().encodeToString(digest);
    }

    /** A server that answers the handshake after it has read the key. */
    private InputStream answering(String status, String accept, String protocol) {
        return new InputStream() {
            private InputStream answer;

            @Override
            public int read() throws IOException {
                if (answer == null) {
                    String request = new String(sent.toByteArray(), StandardCharsets.US_ASCII);
                    String key = request.split("Sec-WebSocket-Key: ")[1].split("\r\n")[0];
                    try {
                        String value = accept == null ? accept(key) : accept;
                        answer = new ByteArrayInputStream(("HTTP/1.1 " + status + "\r\nUpgrade: websocket\r\n"
                            + "sec-websocket-accept: " + value + "\r\nSec-WebSocket-Protocol: " + protocol
                            + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
                    } catch (Exception error) {
                        throw new IOException(error);
                    }
                }
                return answer.read();
            }
        };
    }

    @Test
    void theHandshakeNamesThePathAndTheSubProtocol() throws Exception {
        new WebSocket(answering("101 Switching Protocols", null, "mss.1"), sent).open(ADDRESS);
        String request = new String(sent.toByteArray(), StandardCharsets.US_ASCII);
        assertTrue(request.startsWith("GET /mss/1 HTTP/1.1\r\nHost: gateway.example:443\r\n"), request);
        assertTrue(request.contains("Sec-WebSocket-Protocol: mss.1\r\n"), request);
    }

    @Test
    void anotherAnswerIsNoGateway() {
        assertThrows(IOException.class,
            () -> new WebSocket(answering("404 Not Found", null, "mss.1"), sent).open(ADDRESS));
        sent.reset();
        assertThrows(IOException.class, () -> new WebSocket(answering("101 OK", "wrong", "mss.1"), sent).open(ADDRESS));
        sent.reset();
        assertThrows(IOException.class, () -> new WebSocket(answering("101 OK", null, "other"), sent).open(ADDRESS));
    }

    @Test
    void thePayloadsOfBinaryMessagesAreOneStreamAndPingsAreAnswered() throws Exception {
        InputStream in = reading(0x02, 2, 10, 11, 0x89, 1, 77, 0x80, 1, 12, 0x82, 0, 0x82, 126, 0, 2, 13, 14, 0x88, 0)
            .input();
        byte[] received = new byte[8];
        int count = 0;
        for (int next = in.read(); next >= 0; next = in.read()) received[count++] = (byte) next;
        assertArrayEquals(new byte[] {10, 11, 12, 13, 14, 0, 0, 0}, received);
        assertEquals(5, count);
        byte[] answers = sent.toByteArray();
        assertEquals((byte) 0x8a, answers[0]);
        assertEquals((byte) 0x81, answers[1]);
        assertEquals(77, answers[6] ^ answers[2]);
        assertEquals((byte) 0x88, answers[7]);
    }

    @Test
    void aTextMessageIsRefusedWith1003() {
        assertThrows(IOException.class, () -> reading(0x81, 1, 'x').input().read());
        byte[] close = sent.toByteArray();
        assertEquals((byte) 0x88, close[0]);
        assertEquals(1003, ((close[6] ^ close[2]) & 0xff) << 8 | (close[7] ^ close[3]) & 0xff);
    }

    @Test
    void maskedOrReservedFramesOfAGatewayAreInvalid() {
        assertThrows(IOException.class, () -> reading(0x82, 0x81, 0, 0, 0, 0, 1).input().read());
        assertThrows(IOException.class, () -> reading(0xc2, 1, 0).input().read());
        assertThrows(IOException.class, () -> reading(0x89, 126, 0, 200).input().read());
    }

    @Test
    void aLongWriteIsSplitAtTheLimitOfAFrameAndMasked() throws Exception {
        byte[] bytes = new byte[65_540 + 10];
        for (int index = 0; index < bytes.length; index++) bytes[index] = (byte) index;
        reading().output().write(bytes);
        byte[] frames = sent.toByteArray();
        assertEquals((byte) 0x82, frames[0]);
        assertEquals((byte) 0xff, frames[1]);
        int second = 2 + 8 + 4 + 65_540;
        assertEquals((byte) 0x82, frames[second]);
        assertEquals((byte) 0x8a, frames[second + 1]);
        for (int index = 0; index < 10; index++) {
            assertEquals(bytes[65_540 + index], (byte) (frames[second + 6 + index] ^ frames[second + 2 + (index & 3)]));
        }
    }
}
