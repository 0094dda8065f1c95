package org.mobilesync.internal.wire;

/** A protobuf message of the device protocol. Its fields are public; it belongs to one thread at a time. */
public abstract class Message {
    /** Writes the fields. Fields with their default value are left out. */
    public abstract void write(WireWriter out);

    /** Returns the encoded fields, without a length. */
    public final byte[] encoded() {
        WireWriter out = new WireWriter();
        write(out);
        return out.toBytes();
    }
}
