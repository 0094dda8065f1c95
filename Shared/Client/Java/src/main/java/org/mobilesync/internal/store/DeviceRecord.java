package org.mobilesync.internal.store;

import java.util.List;
import java.util.UUID;
import org.mobilesync.SyncPushToken;
import org.mobilesync.internal.connection.Heartbeat;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.PushToken;

/** The part of a local store that describes the device: its identity, connection count, push token and heartbeats. */
public final class DeviceRecord {
    private final StoreFile file;
    private final Channels channels;
    private String deviceId;
    private byte[] secret;

    DeviceRecord(StoreFile file, Channels channels) {
        this.file = file;
        this.channels = channels;
        file.access("reading the identity", () -> file.database().query(row -> {
            deviceId = row.isNull(0) ? row.getText(1) : row.getText(0);
            secret = file.cipher().open(row.getBytes(2), StoreEncryption.SECRET);
            return null;
        }, "SELECT own_device_id, device_id, device_secret FROM store"));
    }

    /** Returns the device id that the service knows. */
    public String deviceId() {
        return deviceId;
    }

    /** Returns the secret of the device id. */
    public byte[] secret() {
        return secret;
    }

    /**
     * Makes a new device id and secret (DeviceProtocol.md, Device secrets). The positions of the former id's device
     * channels do not apply to the new id. Their oplogs stay available to the app.
     */
    public void replaceIdentity() {
        String made = UUID.randomUUID().toString();
        byte[] madeSecret = StoreFile.randomBytes(StoreFile.SECRET_BYTES);
        file.change("making a new identity", () -> {
            file.database().execute("UPDATE store SET own_device_id = ?, device_secret = ?", made,
                file.cipher().seal(madeSecret, StoreEncryption.SECRET));
            return file.database().execute("UPDATE channel SET user_id = ? WHERE kind = ? AND user_id = ''",
                deviceId, ChannelKind.DEVICE);
        });
        deviceId = made;
        secret = madeSecret;
        channels.load();
    }

    /** Counts a connection attempt durably, and returns its number, higher than all earlier ones. */
    public long countConnection() {
        return file.change("counting a connection", () -> {
            file.database().execute("UPDATE store SET connections = connections + 1");
            return file.database().query(row -> row.getLong(0), "SELECT connections FROM store").get(0);
        });
    }

    /** Returns the push token for Connect; null when the app has never set one. */
    public PushToken pushToken() {
        List<PushToken> tokens = file.access("reading the push token", () -> file.database().query(row -> {
            PushToken token = new PushToken();
            token.provider = row.getLong(0);
            token.token = row.getText(1);
            return token;
        }, "SELECT push_provider, push_token FROM store WHERE push_token IS NOT NULL"));
        return tokens.isEmpty() ? null : tokens.get(0);
    }

    /** Stores the push token; an empty token ends wake-ups. Returns whether the token has changed. */
    public boolean setPushToken(SyncPushToken token) {
        return file.change("storing the push token", () -> file.database().execute(
            "UPDATE store SET push_provider = ?, push_token = ? WHERE push_token IS NOT ? OR push_provider IS NOT ?",
            token.provider(), token.text(), token.text(), token.provider())) > 0;
    }

    /** Returns the results of pings on a network. */
    public Heartbeat.Learned heartbeat(String network) {
        List<Heartbeat.Learned> learned = file.access("reading a heartbeat", () -> file.database().query(
            row -> new Heartbeat.Learned(row.getLong(0), row.getLong(1), row.getLong(2)),
            "SELECT good_seconds, bad_seconds, doubtful_seconds FROM heartbeat WHERE network = ?", network));
        return learned.isEmpty() ? Heartbeat.Learned.NOTHING : learned.get(0);
    }

    /** Stores the results of pings on a network. */
    public void setHeartbeat(Heartbeat.Learned learned, String network) {
        file.change("storing a heartbeat", () -> file.database().execute(
            "INSERT OR REPLACE INTO heartbeat VALUES (?, ?, ?, ?)",
            network, learned.good(), learned.bad(), learned.doubtful()));
    }
}
