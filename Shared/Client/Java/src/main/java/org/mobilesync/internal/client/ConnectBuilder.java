package org.mobilesync.internal.client;

import java.util.Collections;
import java.util.List;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.connection.BoundUser;
import org.mobilesync.internal.connection.ConnectSigner;
import org.mobilesync.internal.store.LocalStore;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.SyncPoint;

/** Makes the frames that connect the device and bind a user. */
final class ConnectBuilder {
    private static final int PROTOCOL_VERSION = 1;
    private static final String LIBRARY_VERSION = "java-0.1.0";
    /** Bytes of a frame for the bind's other fields and a signature. */
    private static final int SPARE_BYTES = 1_024;

    private final SyncConfiguration configuration;
    private final LocalStore store;
    private final ClientState state;
    private final ParameterValues parameters;
    private final ConnectSigner signer;

    ConnectBuilder(SyncConfiguration configuration, LocalStore store, ClientState state, ParameterValues parameters) {
        this.configuration = configuration;
        this.store = store;
        this.state = state;
        this.parameters = parameters;
        signer = configuration.appKey() == null ? null : new ConnectSigner(configuration.appKey());
    }

    /** Returns a new Connect without a bind and a signature. Counts the attempt. */
    Connect connect(BoundUser user) {
        Connect connect = new Connect();
        connect.protocolVersion = PROTOCOL_VERSION;
        connect.connectionNumber = store.device().countConnection();
        connect.instanceId = configuration.instanceId();
        connect.deviceId = store.device().deviceId();
        connect.deviceSecret = store.device().secret();
        connect.storeId = store.file().storeId();
        connect.osName = configuration.osName();
        connect.osVersion = configuration.osVersion();
        connect.appVersion = configuration.appVersion();
        connect.sdkVersion = LIBRARY_VERSION;
        connect.background = !state.isForeground();
        connect.suspended.addAll(store.suspended().list());
        connect.pushToken = store.device().pushToken();
        connect.parameters.addAll(parameters(user));
        // The sync points of the device and of the user share the space that the other fields leave.
        connect.syncPoints.addAll(
            store.channels().syncPoints(null, (bytesLeft(user) - connect.encoded().length) / 2));
        return connect;
    }

    /** Returns the parameters that the device sets for a user, or for itself for null. */
    List<Parameter> parameters(BoundUser user) {
        return parameters.toSend(user == null ? null : user.userId());
    }

    /** Returns a user's sync points for a bind beside a frame's other fields. */
    List<SyncPoint> points(BoundUser user, int takenBytes) {
        if (user == null) return Collections.emptyList();
        return store.channels().syncPoints(user.userId(), bytesLeft(user) - takenBytes);
    }

    /** Signs a Connect, if the app has a key. */
    void sign(Connect connect) {
        if (signer != null) signer.sign(connect, store.clock().signingTimeMs());
    }

    private static int bytesLeft(BoundUser user) {
        // A UTF-16 unit has at most 3 bytes of UTF-8.
        int ids = user == null ? 0 : 3 * (user.userId().length() + user.sessionId().length());
        return Limits.TO_GATEWAY_BYTES - SPARE_BYTES - ids;
    }
}
