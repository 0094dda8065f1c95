package org.mobilesync;

import java.util.concurrent.Executor;
import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.internal.Clock;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.store.PayloadCipher;

/** The settings of a client: gateway, device, local store and limits. Immutable; {@link #builder()} makes it. */
public final class SyncConfiguration {
    /** {@link Builder#backgroundTimeMs}: the connection stays open in the background. */
    public static final long UNLIMITED = -1;
    private static final long SMALLEST_STORE = 1_000_000;
    private static final long DEFAULT_STORE = 100_000_000;
    private static final int DEFAULT_CONNECT_TIMEOUT_MS = 10_000;
    private static final int HIGHEST_PORT = 65_535;
    private static final int SHORTEST_SECRET = 16;
    private static final int LONGEST_SECRET = 64;

    private final Builder values;

    private SyncConfiguration(Builder values) {
        this.values = values;
    }

    /** Returns a builder without values. */
    public static Builder builder() {
        return new Builder();
    }

    /** Collects the settings. {@link #build} checks them. */
    public static final class Builder {
        private String host = "";
        private int port;
        private String instanceId = "";
        private String deviceId = "";
        private byte[] deviceSecret;
        private String storePath = "";
        private DatabaseOpener database;
        private SyncTrust trust = SyncTrust.system();
        private SyncIdentity identity;
        private SyncTransport transport = SyncTransport.PLAIN;
        private SyncAppKey appKey;
        private String osName = "";
        private String osVersion = "";
        private String appVersion = "";
        private int connectTimeoutMs = DEFAULT_CONNECT_TIMEOUT_MS;
        private long firstResendMs;
        private long backgroundTimeMs = UNLIMITED;
        private byte[] storeKey;
        private long storeLimit = DEFAULT_STORE;
        private Executor callbackExecutor;
        private Clock clock = Clock.SYSTEM;

        private Builder() {}

        /** The gateway's host name or address, and its port. The gateway's certificate must contain the host. */
        public Builder gateway(String gatewayHost, int gatewayPort) {
            host = gatewayHost;
            port = gatewayPort;
            return this;
        }

        /** The instance: the app in one environment, {@code <workspaceId>_<appId>}. */
        public Builder instanceId(String value) {
            instanceId = value;
            return this;
        }

        /** The device id: 1 to 100 characters, the same across launches of the app (K5). */
        public Builder deviceId(String value) {
            deviceId = value;
            return this;
        }

        /**
         * The secret that belongs to the device id, 16 to 64 bytes, if it comes from a place that survives a
         * re-installation of the app, as the id does ({@link DeviceIdentifier#secretFromSeed}). By default a new store
         * makes one. A store that has a secret keeps its own.
         */
        public Builder deviceSecret(byte[] value) {
            deviceSecret = value == null ? null : value.clone();
            return this;
        }

        /** The SQLite file of the local store. The client creates the file, but not its folder. */
        public Builder store(String path, DatabaseOpener opener) {
            storePath = path;
            database = opener;
            return this;
        }

        /** The certificate authorities; by default those of the operating system. */
        public Builder trust(SyncTrust value) {
            trust = value;
            return this;
        }

        /** The client certificate for a gateway that requires one; none by default. */
        public Builder identity(SyncIdentity value) {
            identity = value;
            return this;
        }

        /** How frames travel; {@link SyncTransport#PLAIN} by default. */
        public Builder transport(SyncTransport value) {
            transport = value;
            return this;
        }

        /** The key that signs the client's connects; none by default. */
        public Builder appKey(SyncAppKey value) {
            appKey = value;
            return this;
        }

        /**
         * {@code Android}, {@code iOS} or another name, for pushes that are restricted to a system, and its
         * version.
         */
        public Builder operatingSystem(String name, String version) {
            osName = name;
            osVersion = version;
            return this;
        }

        /** The version of the app in dotted numbers, for pushes that are restricted to a version range. */
        public Builder appVersion(String value) {
            appVersion = value;
            return this;
        }

        /** The longest wait for each step of a connection attempt in milliseconds; 10,000 by default. */
        public Builder connectTimeoutMs(int value) {
            connectTimeoutMs = value;
            return this;
        }

        /** The wait before an unconfirmed oplog comes again, 1 ms to 1 h; by default the gateway's, or 10 s (D14). */
        public Builder firstResendMs(long value) {
            firstResendMs = value;
            return this;
        }

        /** The time for which the connection stays open in the background; 0 ends it at once, UNLIMITED by default. */
        public Builder backgroundTimeMs(long value) {
            backgroundTimeMs = value;
            return this;
        }

        /**
         * The key that encrypts payloads, the content of operations and the device's secret in the local store: 32
         * bytes, from the system's key store and not from the app's code. Ids, Sync IDs, times, parameters, the push
         * token, the component, key and name of operations, and the messages of results stay readable. Without a
         * key, nothing is encrypted. An unencrypted store is encrypted when it is opened with a key.
         */
        public Builder storeKey(byte[] value) {
            storeKey = value == null ? null : value.clone();
            return this;
        }

        /**
         * The largest size of the local store in bytes: at least 1 MB, 100 MB by default. A full store deletes
         * confirmed oplogs, oldest first. When none is left, the client stores no more until the app confirms some
         * (K8).
         */
        public Builder storeLimit(long value) {
            storeLimit = value;
            return this;
        }

        /**
         * The executor of all listeners; by default a thread of the client. It must keep the order, and should reject
         * no task. After a rejection the client tries again about 1 s later to deliver data and results; the events of
         * {@link SyncEventListener} are lost.
         */
        public Builder callbackExecutor(Executor value) {
            callbackExecutor = value;
            return this;
        }

        /** The device's clocks; on Android {@code new AndroidClock()}. Others are for tests. */
        public Builder clock(Clock value) {
            clock = value;
            return this;
        }

        /**
         * Returns the settings.
         *
         * @throws SyncException INVALID_ARGUMENT; the message names the setting and its expected form
         */
        public SyncConfiguration build() {
            Limits.checkId(instanceId, "instanceId");
            Limits.checkId(deviceId, "deviceId");
            require(deviceSecret == null
                    || deviceSecret.length >= SHORTEST_SECRET && deviceSecret.length <= LONGEST_SECRET,
                "deviceSecret must have 16 to 64 bytes");
            require(!host.isEmpty() && host.indexOf('/') < 0,
                "gateway: the host is a name or an address, without https://");
            require(port >= 1 && port <= HIGHEST_PORT, "gateway: the port is a number from 1 to 65535");
            require(!storePath.isEmpty() && database != null,
                "store: a path and an opener are needed, for example JdbcDatabase::open");
            require(storeLimit >= SMALLEST_STORE, "storeLimit must be at least 1,000,000 bytes");
            // Checks the length of the key.
            PayloadCipher.of(storeKey);
            require(connectTimeoutMs > 0, "connectTimeoutMs must be above 0");
            require(firstResendMs >= 0, "firstResendMs must not be negative");
            Builder copy = new Builder();
            copy.copyFrom(this);
            return new SyncConfiguration(copy);
        }

        private static void require(boolean isValid, String message) {
            if (!isValid) throw new SyncException(SyncException.Code.INVALID_ARGUMENT, message);
        }

        private void copyFrom(Builder other) {
            host = other.host;
            port = other.port;
            instanceId = other.instanceId;
            deviceId = other.deviceId;
            deviceSecret = other.deviceSecret;
            storePath = other.storePath;
            database = other.database;
            trust = other.trust;
            identity = other.identity;
            transport = other.transport;
            appKey = other.appKey;
            osName = other.osName;
            osVersion = other.osVersion;
            appVersion = other.appVersion;
            connectTimeoutMs = other.connectTimeoutMs;
            firstResendMs = other.firstResendMs;
            backgroundTimeMs = other.backgroundTimeMs;
            storeKey = other.storeKey;
            storeLimit = other.storeLimit;
            callbackExecutor = other.callbackExecutor;
            clock = other.clock;
        }
    }

    /** Returns the gateway's host. */
    public String host() {
        return values.host;
    }

    /** Returns the gateway's port. */
    public int port() {
        return values.port;
    }

    /** Returns the instance id. */
    public String instanceId() {
        return values.instanceId;
    }

    /** Returns the device id that the app chose. */
    public String deviceId() {
        return values.deviceId;
    }

    /** Returns a copy of the secret of the device id; null when the store makes it. */
    public byte[] deviceSecret() {
        return values.deviceSecret == null ? null : values.deviceSecret.clone();
    }

    /** Returns the path of the store. */
    public String storePath() {
        return values.storePath;
    }

    /** Returns the opener of the store. */
    public DatabaseOpener database() {
        return values.database;
    }

    /** Returns the certificate authorities. */
    public SyncTrust trust() {
        return values.trust;
    }

    /** Returns the client certificate; null for none. */
    public SyncIdentity identity() {
        return values.identity;
    }

    /** Returns the transport. */
    public SyncTransport transport() {
        return values.transport;
    }

    /** Returns the key of the app; null for none. */
    public SyncAppKey appKey() {
        return values.appKey;
    }

    /** Returns the name of the operating system. */
    public String osName() {
        return values.osName;
    }

    /** Returns the version of the operating system. */
    public String osVersion() {
        return values.osVersion;
    }

    /** Returns the version of the app. */
    public String appVersion() {
        return values.appVersion;
    }

    /** Returns the connect timeout in milliseconds. */
    public int connectTimeoutMs() {
        return values.connectTimeoutMs;
    }

    /** Returns the first wait of the resend ladder in milliseconds; 0 for the gateway's. */
    public long firstResendMs() {
        return values.firstResendMs;
    }

    /** Returns the background time in milliseconds, or UNLIMITED. */
    public long backgroundTimeMs() {
        return values.backgroundTimeMs;
    }

    /** Returns a copy of the key of the store; null for none. */
    public byte[] storeKey() {
        return values.storeKey == null ? null : values.storeKey.clone();
    }

    /** Returns the largest size of the store in bytes. */
    public long storeLimit() {
        return values.storeLimit;
    }

    /** Returns the executor of listeners; null for a thread of the client. */
    public Executor callbackExecutor() {
        return values.callbackExecutor;
    }

    /** Returns the device's clocks. */
    public Clock clock() {
        return values.clock;
    }
}
