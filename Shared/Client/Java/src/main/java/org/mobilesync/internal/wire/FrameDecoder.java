package org.mobilesync.internal.wire;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;

/** Reads the frames of a gateway from a stream (DeviceProtocol.md, Framing). */
public final class FrameDecoder {
    /** The most bytes of a message to a device. */
    public static final int MAX_BYTES = 1_048_576;

    /** The bytes of a chunk: a length that lies costs at most one chunk of memory. */
    private static final int CHUNK_BYTES = 65_536;

    private final InputStream in;

    /**
     * Creates a decoder.
     *
     * @param in the bytes of the connection
     */
    public FrameDecoder(InputStream in) {
        this.in = in;
    }

    /**
     * Reads the next frame. It blocks until the frame has arrived completely.
     *
     * @return the body; null for a body that this version does not know
     * @throws FrameException for a frame over the limit and for bytes that are no packet
     * @throws EOFException at the end of the stream; a frame that the end cuts off is dropped
     */
    public Body next() throws IOException, FrameException {
        long length = 0;
        for (int index = 0; index < 4; index++) {
            int next = in.read();
            if (next < 0) throw new EOFException("the gateway ended the connection");
            length = length << 8 | next;
        }
        if (length > MAX_BYTES) {
            throw new FrameException("a frame has " + length + " bytes; at most " + MAX_BYTES + " are allowed");
        }
        return Packet.read(new WireReader(read((int) length)));
    }

    private byte[] read(int length) throws IOException {
        byte[] message = new byte[Math.min(length, CHUNK_BYTES)];
        int filled = 0;
        while (filled < length) {
            if (filled == message.length) {
                message = Arrays.copyOf(message, Math.min(length, 2 * message.length));
            }
            int count = in.read(message, filled, message.length - filled);
            if (count < 0) throw new EOFException("the gateway ended the connection within a frame");
            filled += count;
        }
        return message;
    }
}
