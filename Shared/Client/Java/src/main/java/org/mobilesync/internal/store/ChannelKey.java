package org.mobilesync.internal.store;

import org.mobilesync.internal.ChannelKinds;

/** Identifies a channel within one store. */
final class ChannelKey {
    final long kind;
    /** The user of a user channel. For device channels: empty, or the former device id of the channel. */
    final String userId;
    final String bizType;

    ChannelKey(long kind, String userId, String bizType) {
        this.kind = kind;
        this.userId = userId;
        this.bizType = bizType;
    }

    /** Returns the key of a channel on the wire, of this user for user kinds. */
    static ChannelKey of(long kind, String userId, String bizType) {
        return new ChannelKey(kind, ChannelKinds.needsUser(kind) && userId != null ? userId : "", bizType);
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof ChannelKey)) return false;
        ChannelKey key = (ChannelKey) other;
        return kind == key.kind && userId.equals(key.userId) && bizType.equals(key.bizType);
    }

    @Override
    public int hashCode() {
        return (Long.hashCode(kind) * 31 + userId.hashCode()) * 31 + bizType.hashCode();
    }
}
