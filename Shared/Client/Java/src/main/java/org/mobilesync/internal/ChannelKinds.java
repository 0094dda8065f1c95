package org.mobilesync.internal;

import org.mobilesync.internal.wire.ChannelKind;

/** The kinds of channels (DeviceProtocol.md, Packets and their fields). */
public final class ChannelKinds {
    private ChannelKinds() {}

    /** Returns whether this version knows the kind. */
    public static boolean isKnown(long kind) {
        return kind >= ChannelKind.USER && kind <= ChannelKind.GLOBAL_DEVICE;
    }

    /** Returns whether channels of the kind belong to a user, so that their frames belong to a bind. */
    public static boolean needsUser(long kind) {
        return kind == ChannelKind.USER || kind == ChannelKind.GLOBAL_USER;
    }
}
