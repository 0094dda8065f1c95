package org.mobilesync.internal.wire;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Reads protobuf fields from a part of an array (DeviceProtocol.md, Protobuf in brief). */
public final class WireReader {
    /** The default of a field with bytes. */
    public static final byte[] NO_BYTES = new byte[0];

    private static final int LONGEST_VARINT = 10;
    /** The deepest nesting of messages; the protocol needs five levels. */
    private static final int DEEPEST = 16;

    private final byte[] bytes;
    private int position;
    private final int end;
    private final int depth;

    /** Reads the whole array. */
    public WireReader(byte[] bytes) {
        this(bytes, 0, bytes.length, 0);
    }

    private WireReader(byte[] bytes, int start, int end, int depth) {
        this.bytes = bytes;
        this.position = start;
        this.end = end;
        this.depth = depth;
    }

    /** Returns whether another field follows. */
    public boolean hasMore() {
        return position < end;
    }

    /** Reads a field's tag: its number times 8, and its wire type. */
    public int readTag() throws FrameException {
        long tag = readVarint();
        if (tag >>> 3 == 0) throw new FrameException("a field has the number 0");
        if (tag >>> 32 != 0) throw new FrameException("a field has a number above 2^29");
        return (int) tag;
    }

    /** Reads a number of 64 bits; an unsigned one above 2^63 is negative here. */
    public long readVarint() throws FrameException {
        long value = 0;
        for (int index = 0; index < LONGEST_VARINT; index++) {
            if (position >= end) throw new FrameException("a varint is cut off");
            byte next = bytes[position++];
            value |= (long) (next & 0x7f) << (7 * index);
            if (next >= 0) return value;
        }
        throw new FrameException("a varint has more than 10 bytes");
    }

    /** Reads an unsigned number of 32 bits; of a larger one the low 32 bits. */
    public long readUInt32() throws FrameException {
        return readVarint() & 0xffff_ffffL;
    }

    /** Reads a Boolean. */
    public boolean readBool() throws FrameException {
        return readVarint() != 0;
    }

    /** Reads a text; bytes that are not UTF-8 are malformed. */
    public String readText() throws FrameException {
        WireReader inner = message();
        try {
            return StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT)
                .decode(ByteBuffer.wrap(inner.bytes, inner.position, inner.end - inner.position)).toString();
        } catch (CharacterCodingException error) {
            throw new FrameException("a text is not UTF-8");
        }
    }

    /** Reads bytes. */
    public byte[] readBytes() throws FrameException {
        WireReader inner = message();
        return Arrays.copyOfRange(inner.bytes, inner.position, inner.end);
    }

    /** Reads a list of numbers in the packed form. */
    public void readPacked(LongList values) throws FrameException {
        WireReader inner = message();
        while (inner.hasMore()) values.add(inner.readVarint());
    }

    /** Returns a reader of the message in this field. */
    public WireReader message() throws FrameException {
        long length = readVarint();
        if (length < 0 || length > end - position) throw new FrameException("a field is longer than its message");
        if (depth >= DEEPEST) throw new FrameException("messages are nested too deeply");
        int start = position;
        position += (int) length;
        return new WireReader(bytes, start, position, depth + 1);
    }

    /** Skips the value of an unknown field, or of a known one with another wire type. */
    public void skip(int tag) throws FrameException {
        switch (tag & 7) {
            case 0:
                readVarint();
                break;
            case 1:
                skipBytes(8);
                break;
            case 2:
                message();
                break;
            case 5:
                skipBytes(4);
                break;
            default:
                throw new FrameException("a field has the unknown wire type " + (tag & 7));
        }
    }

    private void skipBytes(int count) throws FrameException {
        if (count > end - position) throw new FrameException("a field is cut off");
        position += count;
    }
}
