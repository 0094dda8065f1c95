package org.mobilesync.guide;

import com.alipay.mobile.rome.longlinkservice.ConnectionListener;
import com.alipay.mobile.rome.longlinkservice.ISyncCallback;
import com.alipay.mobile.rome.longlinkservice.syncmodel.SyncMessage;
import com.mpaas.mobile.rome.longlinkservice.ConnectionEvent;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.mobilesync.DeviceIdentifier;
import org.mobilesync.MetaConfig;
import org.mobilesync.SyncBatch;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncException;
import org.mobilesync.SyncStatus;
import org.mobilesync.SyncTrust;

/** The implementation of the guide's static API: the app's client, its user, and the callbacks of its data. */
public final class GuideClient {
    /** The session id when the app passes none (K2). */
    private static final String DEFAULT_SESSION = "SESSION_DEMO";
    private static final int BATCH_LIMIT = 100;
    private static final String META_CONFIG = "meta.config";
    /** The authority of a private installation, beside meta.config (K7). */
    private static final String AUTHORITY = "mss-ca.pem";
    private static final Logger LOG = Logger.getLogger("org.mobilesync");
    private static final GuideClient SHARED = new GuideClient();

    private GuidePlatform platform;
    private SyncClient client;
    private String givenDeviceId;
    private String userId;
    private String boundUserId;
    private final Map<String, Runnable> registrations = new HashMap<>();
    private final List<ConnectionListener> connectionListeners = new CopyOnWriteArrayList<>();
    /** The batches of the messages that the app holds, so that a message stays a plain value of the guide. */
    private final Map<SyncMessage, SyncBatch> batches = Collections.synchronizedMap(new WeakHashMap<>());
    /** The calls before the start that were logged. */
    private final Set<String> loggedCalls = new HashSet<>();

    /** Creates a client that is not started. An app has one; tests make others. */
    GuideClient() {}

    /** Returns the instance that the static methods use. */
    public static GuideClient shared() {
        return SHARED;
    }

    /** Sets the platform for the next start. */
    public synchronized void setUp(GuidePlatform newPlatform) {
        platform = newPlatform;
    }

    /**
     * Starts the client once, on the calling thread: it opens the local store, and does not connect before
     * {@link #setForeground}. Later calls have no effect. A failure is logged.
     */
    public synchronized void start(GuidePlatform otherwise) {
        if (client != null) return;
        try {
            client = makeClient(platform == null ? otherwise : platform);
        } catch (IOException | SyncException error) {
            LOG.log(
                Level.SEVERE, "the client did not start; correct the cause and call MPSync.initialize again", error);
        }
    }

    private SyncClient makeClient(GuidePlatform on) throws IOException {
        byte[] settings = on.asset(META_CONFIG);
        if (settings == null) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                "the app has no " + META_CONFIG
                    + " in its assets; the operator makes it with mssctl instance meta-config");
        }
        MetaConfig meta = MetaConfig.parse(settings, META_CONFIG);
        byte[] authority = on.asset(AUTHORITY);
        // Each instance has its own store, because a store of another environment would be refused.
        String store = on.folder() + "/" + meta.instanceId().replaceAll("[^A-Za-z0-9_-]", "%") + ".sqlite";
        SyncClient made = new SyncClient(meta.configuration()
            .deviceId(chosenDeviceId(on)).deviceSecret(chosenSecret(on)).store(store, on.database())
            .trust(authority == null ? SyncTrust.system() : SyncTrust.authorityText(authority, AUTHORITY))
            .operatingSystem("Android", on.osVersion()).appVersion(on.appVersion())
            .backgroundTimeMs(0).clock(on.clock()).build());
        made.addListener(new SyncEventListener() {
            @Override
            public void onStatus(SyncStatus status) {
                ConnectionEvent event = new ConnectionEvent(status);
                for (ConnectionListener listener : connectionListeners) listener.onConnectionStateChanged(event);
            }

            @Override
            public void onClosedForGood(long code, String reason) {
                LOG.log(Level.SEVERE, "the client stopped connecting: {0} {1}", new Object[] {code, reason});
            }

            @Override
            public void onConnectionLost(String reason) {
                LOG.log(Level.INFO, "connection lost: {0}", reason);
            }
        });
        made.setForeground(false);
        made.connect();
        return made;
    }

    /** Ends the client as the end of the process would. For tests. */
    public void shutDown() {
        SyncClient ended;
        synchronized (this) {
            ended = client;
            client = null;
            platform = null;
            givenDeviceId = null;
            userId = null;
            boundUserId = null;
            registrations.clear();
            loggedCalls.clear();
        }
        if (ended != null) ended.close();
    }

    /** Returns the client below the guide's calls, for calls that the guide does not have; null before the start. */
    public synchronized SyncClient client() {
        return client;
    }

    /**
     * Sets the device id that the app already has, such as the vendor's UTDID. Call it before
     * {@code MPSync.initialize}, in each start of the app and always with the same id: a local store of another id is
     * refused (FOREIGN_STORE), and the client does not start.
     */
    public synchronized void setDeviceId(String deviceId) {
        givenDeviceId = deviceId;
    }

    private String chosenDeviceId(GuidePlatform on) throws IOException {
        if (givenDeviceId != null) return givenDeviceId;
        return DeviceIdentifier.load(on.folder(), on.deviceSeed());
    }

    /** Returns the secret of the seed, if the device id survives a re-installation as the seed does. */
    private byte[] chosenSecret(GuidePlatform on) throws IOException {
        String seed = on.deviceSeed();
        if (seed == null) return null;
        boolean survives = givenDeviceId != null || chosenDeviceId(on).equals(DeviceIdentifier.fromSeed(seed));
        return survives ? DeviceIdentifier.secretFromSeed(seed) : null;
    }

    /** Returns the client; null before the start, which is logged once for each call. */
    private synchronized SyncClient started(String call) {
        if (client == null && loggedCalls.add(call)) {
            LOG.log(Level.WARNING, "ignored MPSync.{0}: call MPSync.initialize first", call);
        }
        return client;
    }

    /** Returns the device id that the service knows; makes it before the start. */
    public synchronized String deviceId(GuidePlatform otherwise) {
        if (client != null) return client.deviceId();
        try {
            return chosenDeviceId(platform == null ? otherwise : platform);
        } catch (IOException error) {
            throw new SyncException(SyncException.Code.STORE,
                "the app's folder cannot be used; check space and access rights", error);
        }
    }

    /** Reports that the app entered or left the foreground. */
    public void setForeground(boolean isForeground) {
        SyncClient present = started(isForeground ? "appToForeground" : "appToBackground");
        if (present != null) present.setForeground(isForeground);
    }

    /** Returns whether the connection is open. */
    public boolean isConnected() {
        SyncClient present = started("isConnected");
        return present != null && present.isConnected();
    }

    /** Adds a listener of the connection's status. */
    public void addConnectionListener(ConnectionListener listener) {
        connectionListeners.add(listener);
    }

    /** Removes a listener of the connection's status. */
    public void removeConnectionListener(ConnectionListener listener) {
        connectionListeners.remove(listener);
    }

    /** Sets the signed-in user. */
    public synchronized void setUserId(String newUserId) {
        userId = newUserId;
    }

    /** Returns the signed-in user; null for none. */
    public synchronized String userId() {
        return userId;
    }

    /** Binds the signed-in user, and unbinds another bound user first. Returns false when it binds nothing. */
    public synchronized boolean bind(String sessionId) {
        SyncClient present = started("updateUserInfo");
        if (present == null) return false;
        if (userId == null || userId.isEmpty()) {
            LOG.warning("cannot bind: no user id is set; call MPLogger.setUserId first");
            return false;
        }
        if (boundUserId != null && !boundUserId.equals(userId)) present.unbind();
        try {
            present.bind(userId, sessionId == null ? DEFAULT_SESSION : sessionId);
            boundUserId = userId;
            return true;
        } catch (SyncException error) {
            LOG.log(Level.SEVERE, "cannot bind", error);
            return false;
        }
    }

    /** Ends the bind. */
    public synchronized void unbind() {
        SyncClient present = started("clearUserInfo");
        if (present != null) present.unbind();
        boundUserId = null;
    }

    /** Sets the callback of a Sync ID, and replaces an earlier one. */
    public synchronized void register(String bizType, ISyncCallback callback) {
        SyncClient present = started("registerBiz");
        if (present == null) return;
        unregister(bizType);
        try {
            registrations.put(bizType, present.listenInBatches(bizType, BATCH_LIMIT, batch -> {
                SyncMessage message = GuideMessage.of(batch);
                batches.put(message, batch);
                callback.onReceiveMessage(message);
            }));
        } catch (SyncException error) {
            LOG.log(Level.SEVERE, "cannot register", error);
        }
    }

    /** Removes the callback of a Sync ID. */
    public synchronized void unregister(String bizType) {
        Runnable end = registrations.remove(bizType);
        if (end != null) end.run();
    }

    /** Confirms a message. A message that the app made itself is ignored. */
    public void confirm(SyncMessage message) {
        SyncClient present = started("reportMsgReceived");
        SyncBatch batch = batches.get(message);
        if (present == null || batch == null) return;
        present.confirm(batch).whenComplete((nothing, error) -> {
            if (error != null) LOG.log(Level.SEVERE, "confirming a message failed; its data comes again", error);
        });
    }
}
