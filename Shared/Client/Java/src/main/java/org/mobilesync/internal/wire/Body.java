package org.mobilesync.internal.wire;

/** A message that a frame can contain. */
public abstract class Body extends Message {
    /** Returns the number of the body's field in a packet. */
    public abstract int number();

    /** Returns the frame: a length of 4 bytes and the packet (DeviceProtocol.md, Framing). */
    public final byte[] frame() {
        WireWriter out = new WireWriter();
        out.putFrame(number(), this);
        return out.toBytes();
    }
}
