package org.mobilesync.internal.connection;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.List;
import org.mobilesync.SyncAppKey;
import org.mobilesync.internal.HmacSha256;
import org.mobilesync.internal.wire.Bind;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.Signature;
import org.mobilesync.internal.wire.SyncPoint;

/** Signs the first frame of a connection (DeviceProtocol.md, Signed connects). */
public final class ConnectSigner {
    private static final int NONCE_BYTES = 16;

    private final SyncAppKey key;
    private final SecureRandom random = new SecureRandom();

    /** Creates a signer with a key of the app. */
    public ConnectSigner(SyncAppKey key) {
        this.key = key;
    }

    /** Signs a Connect with a new nonce. */
    public void sign(Connect connect, long nowMs) {
        byte[] nonce = new byte[NONCE_BYTES];
        random.nextBytes(nonce);
        sign(connect, nowMs, nonce);
    }

    /** Signs a Connect with this nonce, of 16 to 32 bytes. */
    public void sign(Connect connect, long nowMs, byte[] nonce) {
        Signature signature = new Signature();
        signature.keyId = key.id();
        signature.timestampMs = nowMs;
        signature.nonce = nonce;
        connect.signature = signature;
        signature.mac = HmacSha256.sign(key.secret(), signedParts(connect));
    }

    /** Returns the bytes that the signature covers: all fields but its mac, each part after its length. */
    public static byte[] signedParts(Connect connect) {
        Parts parts = new Parts();
        parts.add("mss-connect-1");
        parts.add(connect.signature.keyId);
        parts.add(connect.signature.timestampMs);
        parts.add(connect.signature.nonce);
        parts.add(connect.protocolVersion);
        parts.add(connect.instanceId);
        parts.add(connect.deviceId);
        parts.add(connect.storeId);
        parts.add(connect.osName);
        parts.add(connect.osVersion);
        parts.add(connect.appVersion);
        parts.add(connect.sdkVersion);
        parts.add(connect.background);
        parts.add(connect.syncPoints);
        addBind(connect.bind, parts);
        parts.add(connect.simple);
        parts.add(connect.suspended.size());
        for (String bizType : connect.suspended) parts.add(bizType);
        parts.add(connect.deviceSecret);
        parts.add(Long.toUnsignedString(connect.connectionNumber));
        addLaterParts(connect, parts);
        return parts.out.toByteArray();
    }

    private static void addBind(Bind bind, Parts parts) {
        parts.add(bind != null);
        if (bind == null) return;
        parts.add(bind.bindNumber);
        parts.add(bind.userId);
        parts.add(bind.sessionId);
        parts.add(bind.syncPoints);
    }

    /** Adds the parts of fields that came later to the protocol; they are signed only where they are set. */
    private static void addLaterParts(Connect connect, Parts parts) {
        if (connect.pushToken != null) {
            parts.add(connect.pushToken.provider);
            parts.add(connect.pushToken.token);
        }
        if (!connect.parameters.isEmpty()) {
            parts.add(connect.parameters.size());
            for (Parameter parameter : connect.parameters) {
                parts.add(parameter.bizType);
                parts.add(parameter.name);
                parts.add(parameter.value);
            }
        }
        Bind bind = connect.bind;
        if (bind != null && (bind.requestedByApp || bind.ownershipEpoch != 0)) {
            parts.add(bind.requestedByApp);
            parts.add(bind.ownershipEpoch);
        }
    }

    /** Texts in UTF-8, numbers as decimal digits, Booleans as 1 and 0, lists after their count. */
    private static final class Parts {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();

        void add(byte[] bytes) {
            for (int shift = 24; shift >= 0; shift -= 8) out.write(bytes.length >>> shift);
            out.write(bytes, 0, bytes.length);
        }

        void add(String text) {
            add(text.getBytes(StandardCharsets.UTF_8));
        }

        void add(long number) {
            add(Long.toString(number));
        }

        void add(boolean flag) {
            add(flag ? 1 : 0);
        }

        void add(List<SyncPoint> points) {
            add(points.size());
            for (SyncPoint point : points) {
                add(point.kind);
                add(point.bizType);
                add(point.oplogId);
            }
        }
    }
}
