package org.mobilesync.internal.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes protobuf fields (DeviceProtocol.md, Protobuf in brief). Fields with their default value are left out. */
public final class WireWriter {
    private static final int FRAME_LENGTH_BYTES = 4;

    private byte[] bytes = new byte[256];
    private int size;

    /** Writes a number of 64 bits. */
    public void putVarint(int field, long value) {
        if (value == 0) return;
        putTag(field, 0);
        putRaw(value);
    }

    /** Writes a number of 32 bits; higher bits are left out. */
    public void putUInt32(int field, long value) {
        putVarint(field, value & 0xffff_ffffL);
    }

    /** Writes a Boolean. */
    public void putBool(int field, boolean value) {
        putVarint(field, value ? 1 : 0);
    }

    /** Writes a text as UTF-8. */
    public void putText(int field, String value) {
        if (!value.isEmpty()) putElement(field, value);
    }

    /** Writes bytes. */
    public void putBytes(int field, byte[] value) {
        if (value.length > 0) putElement(field, value);
    }

    /** Writes a message; null is left out, an empty message is not. */
    public void putMessage(int field, Message value) {
        if (value == null) return;
        WireWriter inner = new WireWriter();
        value.write(inner);
        putLengthPrefixed(field, inner.bytes, inner.size);
    }

    /** Writes a text of a list, also an empty one. */
    public void putElement(int field, String value) {
        putElement(field, value.getBytes(StandardCharsets.UTF_8));
    }

    /** Writes bytes of a list, also empty ones. */
    public void putElement(int field, byte[] value) {
        putLengthPrefixed(field, value, value.length);
    }

    /** Writes a list of numbers in the packed form. */
    public void putPacked(int field, LongList values) {
        if (values.isEmpty()) return;
        WireWriter inner = new WireWriter();
        for (int index = 0; index < values.size(); index++) inner.putRaw(values.get(index));
        putLengthPrefixed(field, inner.bytes, inner.size);
    }

    /** Writes a frame: the length in 4 bytes, big-endian, and the packet with this body. */
    void putFrame(int field, Body body) {
        int start = size;
        for (int index = 0; index < FRAME_LENGTH_BYTES; index++) putByte(0);
        putMessage(field, body);
        int length = size - start - FRAME_LENGTH_BYTES;
        for (int index = 0; index < FRAME_LENGTH_BYTES; index++) {
            bytes[start + index] = (byte) (length >>> (24 - 8 * index));
        }
    }

    /** Returns the written bytes. */
    public byte[] toBytes() {
        return Arrays.copyOf(bytes, size);
    }

    private void putLengthPrefixed(int field, byte[] value, int length) {
        putTag(field, 2);
        putRaw(length);
        reserve(length);
        System.arraycopy(value, 0, bytes, size, length);
        size += length;
    }

    private void putTag(int field, int wireType) {
        putRaw((long) field << 3 | wireType);
    }

    private void putRaw(long value) {
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            putByte((int) (rest & 0x7f | 0x80));
            rest >>>= 7;
        }
        putByte((int) rest);
    }

    private void putByte(int value) {
        reserve(1);
        bytes[size++] = (byte) value;
    }

    private void reserve(int more) {
        if (size + more > bytes.length) bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, size + more));
    }
}
