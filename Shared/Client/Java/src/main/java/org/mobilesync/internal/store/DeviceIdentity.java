package org.mobilesync.internal.store;

/** The device id of an app, and its secret if the app has one. */
public final class DeviceIdentity {
    /** The device id. */
    public final String deviceId;
    /** The secret; null if a new store makes one. */
    final byte[] secret;

    /** Creates an identity; a null secret has a new store make one. */
    public DeviceIdentity(String deviceId, byte[] secret) {
        this.deviceId = deviceId;
        this.secret = secret;
    }
}
