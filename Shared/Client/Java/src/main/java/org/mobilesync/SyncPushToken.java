package org.mobilesync;

import java.nio.charset.StandardCharsets;
import org.mobilesync.internal.wire.PushProvider;

/** The address for wake-up pushes to this device: the token that the push provider gave to the app. */
public final class SyncPushToken {
    private static final int LONGEST_BYTES = 1_024;

    private final long provider;
    private final String text;

    private SyncPushToken(long provider, String text) {
        this.provider = provider;
        this.text = text;
    }

    /**
     * A registration token of Firebase Cloud Messaging.
     *
     * @throws SyncException INVALID_ARGUMENT when it is empty, longer than 1,024 bytes, or not printable ASCII
     */
    public static SyncPushToken fcm(String token) {
        boolean isPrintable = token.chars().allMatch(unit -> unit > 0x20 && unit < 0x7f);
        if (token.isEmpty() || token.getBytes(StandardCharsets.UTF_8).length > LONGEST_BYTES || !isPrintable) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                "a token of FCM has 1 to 1,024 printable ASCII characters; pass the text of the provider unchanged");
        }
        return new SyncPushToken(PushProvider.FCM, token);
    }

    /** No token: the service sends no more wake-ups to this device. */
    public static SyncPushToken none() {
        return new SyncPushToken(PushProvider.FCM, "");
    }

    /** Returns the provider's number on the wire. For the library's own use. */
    public long provider() {
        return provider;
    }

    /** Returns the token; empty for none. */
    public String text() {
        return text;
    }
}
