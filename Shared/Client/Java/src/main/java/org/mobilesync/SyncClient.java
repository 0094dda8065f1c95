package org.mobilesync;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.client.ClientEngine;
import org.mobilesync.internal.store.PayloadCipher;

/**
 * A device's client of the Mobile Sync Service: one connection, one local store, and data for the app in order.
 *
 * <p>All methods can be called on any thread, and none waits for the network or the disk. Calls take effect in their
 * order. A future completes exceptionally with a {@link SyncException}. Listeners are called on the callback executor.
 *
 * <p>A continuation that is chained to a future ({@code thenApply}, {@code whenComplete}) can run on the thread that
 * serves the connection and the store. It must not block, and must not wait for another future of the client: use the
 * forms with {@code Async} for such work. A {@link #close} in such a continuation returns without its waits.
 *
 * <p>One client can use a store at a time, from its creation to {@link #close}.
 */
public final class SyncClient implements AutoCloseable {
    private static final int MOST_IN_BATCH = 1_000;
    private static final int MOST_IN_HISTORY = 1_000;
    /** Bytes of UTF-8 are at most three times the UTF-16 units; a session id has at most 4,096 units (V1). */
    private static final String SESSION_LIMIT = "sessionId must have at most " + Limits.SESSION_UNITS + " characters";

    private final ClientEngine engine;

    /**
     * Opens the local store. The client does not connect before {@link #connect}.
     *
     * @throws SyncException TRUST, STORE, STORE_FULL, STORE_IN_USE (another client still holds the store after 1 s),
     *     FOREIGN_STORE, STORE_KEY (the store was encrypted with another key, or the key is missing)
     */
    public SyncClient(SyncConfiguration configuration) {
        engine = new ClientEngine(configuration);
    }

    // Connection.

    /**
     * Connects, and connects again after every lost connection. It also ends a back-off at once, and allows attempts
     * again after {@link SyncEventListener#onClosedForGood}.
     */
    public CompletableFuture<Void> connect() {
        return engine.connect();
    }

    /** Ends the connection, and makes no other until {@link #connect}. Stored data is still handed out. */
    public CompletableFuture<Void> disconnect() {
        return engine.disconnect();
    }

    /** Reports whether the app is in the foreground. A client begins in the foreground. */
    public CompletableFuture<Void> setForeground(boolean isForeground) {
        return engine.setForeground(isForeground);
    }

    /**
     * Reports the device's network. Without a network the client makes no attempts. When the name changes, the client
     * connects again at once.
     *
     * @param name any text that distinguishes networks; heartbeats are learned for each
     */
    public CompletableFuture<Void> networkChanged(boolean isAvailable, String name) {
        return engine.setNetwork(isAvailable, name);
    }

    /** Returns the present status of the connection. */
    public SyncStatus status() {
        return engine.status();
    }

    /** Returns whether the gateway has accepted this client on a connection that is open. */
    public boolean isConnected() {
        return engine.status() == SyncStatus.CONNECTED;
    }

    /** Returns whether the complete backlog of the last connect or bind has arrived. */
    public boolean isCaughtUp() {
        return engine.isCaughtUp();
    }

    /** Returns the device id that the service knows ({@link SyncEventListener#onRegisteredAnew}). */
    public String deviceId() {
        return engine.deviceId();
    }

    /** Adds a listener of events from now on. */
    public void addListener(SyncEventListener listener) {
        engine.addListener(listener);
    }

    /** Removes a listener of events. */
    public void removeListener(SyncEventListener listener) {
        engine.removeListener(listener);
    }

    // User.

    /**
     * Binds a user, or another session of the bound user. Data of the previously bound user waits until that user is
     * bound again. The client repeats the bind on every later connection (K2). A listener call that has begun can still
     * deliver data of the former user; see {@link SyncOplog#userId}.
     *
     * @param userId the user, 1 to 100 UTF-16 units without NUL
     * @param sessionId the user session that the tenant checks, at most 4,096 UTF-16 units; an instance can allow less
     * @throws SyncException INVALID_ARGUMENT when an id breaks its limit
     */
    public CompletableFuture<Void> bind(String userId, String sessionId) {
        Limits.checkId(userId, "userId");
        if (sessionId.length() > Limits.SESSION_UNITS) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT, SESSION_LIMIT);
        }
        return engine.bind(userId, sessionId);
    }

    /**
     * Ends the bind. From now on listeners receive only device data. A listener call that has begun can still deliver
     * data of the former user; see {@link SyncOplog#userId}.
     */
    public CompletableFuture<Void> unbind() {
        return engine.bind(null, null);
    }

    /**
     * Sets the push token, with which the service can wake this device while it is not connected. The client stores it
     * and reports it with the next connect; when it has changed, the client connects again at once.
     */
    public CompletableFuture<Void> setPushToken(SyncPushToken token) {
        return engine.setPushToken(token);
    }

    // Data.

    /**
     * Begins to receive the oplogs of a Sync ID, beginning with those that wait in the local store (K3).
     *
     * @return ends the registration; data that arrives later waits in the local store
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID
     */
    public Runnable listen(String bizType, SyncOplogListener listener) {
        return listenInBatches(bizType, 1, batch -> listener.onOplog(batch.oplogs().get(0)));
    }

    /** Begins to receive the oplogs of all Sync IDs, for tools and for apps with one handler. */
    public Runnable listenToAll(SyncOplogListener listener) {
        return engine.addReader(null, 1, batch -> listener.onOplog(batch.oplogs().get(0)));
    }

    /**
     * Begins to receive the oplogs of a Sync ID in batches.
     *
     * @param limit the most oplogs in one batch, 1 to 1,000; other values are clamped
     * @return ends the registration
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID
     */
    public Runnable listenInBatches(String bizType, int limit, SyncBatchListener listener) {
        Limits.checkBizType(bizType);
        return engine.addReader(bizType, Math.min(Math.max(limit, 1), MOST_IN_BATCH), listener);
    }

    /**
     * Records that the app has processed an oplog. The client does not hand it out again, except as a replay. The
     * record is on the disk when the future completes, and the client reports it to the service (K4).
     */
    public CompletableFuture<Void> confirm(SyncOplog oplog) {
        return engine.confirm(Collections.singletonList(oplog));
    }

    /** Confirms all oplogs of a batch with one write to the disk. */
    public CompletableFuture<Void> confirm(SyncBatch batch) {
        return engine.confirm(batch.oplogs());
    }

    // Subscriptions.

    /**
     * Suspends a Sync ID until {@link #resume}, also after restarts. The service sends nothing of it, and oplogs in the
     * local store wait. A listener call that has begun can still deliver data of the Sync ID, also of a former user;
     * see {@link SyncOplog#userId}.
     *
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID; the future also with it above 200 suspended ones
     */
    public CompletableFuture<Void> suspend(String bizType) {
        Limits.checkBizType(bizType);
        return engine.setSuspended(bizType, true, false);
    }

    /** Resumes a suspended Sync ID. The service sends the data since, as far as its re-push mode allows. */
    public CompletableFuture<Void> resume(String bizType) {
        Limits.checkBizType(bizType);
        return engine.setSuspended(bizType, false, false);
    }

    /**
     * Requests all valid oplogs of a Sync ID again, confirmed or not. They arrive with {@link SyncOplog#isReplay}. The
     * recovery continues after lost connections and restarts until it is complete. Without a bound user it covers the
     * device's data, or the data of the next bound user.
     *
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID
     */
    public CompletableFuture<Void> recover(String bizType) {
        Limits.checkBizType(bizType);
        return engine.beginRecovery(bizType);
    }

    /**
     * Deletes the local data of a Sync ID, of the device and the bound user, and suspends it until {@link #resume}. A
     * listener call that has begun can still deliver data of the Sync ID, also of a former user; see
     * {@link SyncOplog#userId}.
     */
    public CompletableFuture<Void> unsubscribe(String bizType) {
        Limits.checkBizType(bizType);
        return engine.setSuspended(bizType, true, true);
    }

    // Subscription parameters.

    /**
     * Sets a parameter of a Sync ID for the bound user, or for the device when no user is bound. The client sends the
     * value at once, or with the next connection. The service then sends the oplogs that match the new value, older
     * ones too, each oplog once.
     *
     * @param name the name of the parameter in the configuration's filter
     * @param value the value; null removes it
     * @param kind the place where the value is kept. SERVER needs a bound user. The service refuses a SERVER value with
     *     a name or type that the configuration does not have ({@link SyncEventListener#onParameterRefused}). It
     *     ignores such a value of the other kinds
     * @return completes with INVALID_ARGUMENT above 64 values of the kinds SESSION and CLIENT, and for a SERVER value
     *     without a bound user
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID or name
     */
    public CompletableFuture<Void> setParameter(
        String bizType, String name, SyncParameterValue value, SyncParameterKind kind
    ) {
        Limits.checkBizType(bizType);
        if (name.isEmpty() || name.length() > Limits.PARAMETER_NAME_UNITS || name.indexOf(0) >= 0) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                "a parameter's name has 1 to " + Limits.PARAMETER_NAME_UNITS + " characters without NUL");
        }
        return engine.setParameter(
            new SyncParameter(bizType, name, kind, value, kind == SyncParameterKind.SERVER));
    }

    /**
     * Returns all values of the bound user, or of the device when no user is bound. Of several values of a parameter,
     * the first one is in force.
     */
    public CompletableFuture<List<SyncParameter>> parameters() {
        return engine.parameters();
    }

    // Lists.

    /**
     * Returns the newest oplogs of a Sync ID below an id, newest first: from the local store up to its first gap, then
     * from the server within its retention. It neither hands out nor confirms an oplog.
     *
     * @param before 0 for the newest oplogs; for older ones, the last id of the previous part
     * @param count the most oplogs to return, 1 to 1,000; other values are clamped
     * @return completes with NOT_ELIGIBLE when the server does not give this data to this device and user now
     */
    public CompletableFuture<SyncHistory> history(String bizType, long before, int count) {
        Limits.checkBizType(bizType);
        return engine.lists().history(bizType, null, Math.max(before, 0), clamped(count));
    }

    /**
     * Returns the newest oplogs of one conversation below an id, as the other {@code history} does for the whole Sync
     * ID.
     *
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID or conversation
     */
    public CompletableFuture<SyncHistory> history(String bizType, String conversation, long before, int count) {
        checkConversation(bizType, conversation);
        return engine.lists().history(bizType, conversation, Math.max(before, 0), clamped(count));
    }

    /**
     * Returns the newest oplogs of a Sync ID below an id that are in the local store, newest first, without a request
     * to the server. Parameters as for {@code history}.
     *
     * @return {@code isComplete()} is false when the store lacks oplogs in between; {@code hasMore()} is true when
     *     there are older ones in the store, or can be on the server
     */
    public CompletableFuture<SyncHistory> localHistory(String bizType, long before, int count) {
        Limits.checkBizType(bizType);
        return engine.lists().localHistory(bizType, null, Math.max(before, 0), clamped(count));
    }

    /**
     * Returns the newest oplogs of one conversation below an id that are in the local store, as the other
     * {@code localHistory} does for the whole Sync ID.
     *
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID or conversation
     */
    public CompletableFuture<SyncHistory> localHistory(String bizType, String conversation, long before, int count) {
        checkConversation(bizType, conversation);
        return engine.lists().localHistory(bizType, conversation, Math.max(before, 0), clamped(count));
    }

    private static int clamped(int count) {
        return Math.min(Math.max(count, 1), MOST_IN_HISTORY);
    }

    private static void checkConversation(String bizType, String conversation) {
        Limits.checkBizType(bizType);
        Limits.checkId(conversation, "conversation");
    }

    /**
     * Returns the state of each channel of the device and the bound user, on the device and on the server, in the order
     * of the Sync IDs. Without an answer of the gateway, the result contains only the local state.
     */
    public CompletableFuture<List<SyncChannelSummary>> channelSummaries() {
        return engine.lists().summaries();
    }

    /**
     * Returns the conversations of a Sync ID, on the device and on the server, newest first. Without an answer of the
     * gateway, the result contains only the local state.
     *
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID
     */
    public CompletableFuture<List<SyncConversation>> conversations(String bizType) {
        Limits.checkBizType(bizType);
        return engine.lists().conversations(bizType);
    }

    /**
     * Records on this device that the user has read a conversation up to an oplog. The record is on the disk when the
     * future completes. A lower id than the recorded one has no effect, nor has a Sync ID without data on this device.
     *
     * @param upToOplogId the newest oplog that the user has read
     * @throws SyncException INVALID_ARGUMENT for an invalid Sync ID or conversation
     */
    public CompletableFuture<Void> markRead(String bizType, String conversation, long upToOplogId) {
        checkConversation(bizType, conversation);
        return engine.withUser((store, userId) -> {
            store.history().markRead(bizType, conversation, userId, upToOplogId);
            return null;
        });
    }

    // Operations.

    /**
     * Stores operations of the bound user, and sends them in this order when there is a connection. All are on the disk
     * when the future completes, or none. Each operation gets one result later ({@link #listenForResults}). An
     * operation whose id the client knows is ignored, so a repeated call does no harm.
     *
     * @return completes with INVALID_ARGUMENT when no user is bound, STORE_FULL when the store is full
     * @throws SyncException INVALID_ARGUMENT when an operation breaks a limit ({@link SyncOperation#fault})
     */
    public CompletableFuture<Void> submit(List<SyncOperation> operations) {
        List<SyncOperation> copy = new ArrayList<>(operations);
        for (SyncOperation operation : copy) {
            String fault = operation.fault();
            if (fault == null) continue;
            throw new SyncException(
                SyncException.Code.INVALID_ARGUMENT, "operation " + operation.id() + ": " + fault);
        }
        return engine.submit(copy);
    }

    /** Cancels those of the bound user's operations that the service cannot have received, and returns their ids. */
    public CompletableFuture<List<String>> cancelOperations(List<String> ids) {
        List<String> copy = new ArrayList<>(ids);
        return engine.withUser((store, userId) ->
            userId == null ? Collections.<String>emptyList() : store.outbox().cancel(copy, userId));
    }

    /** Returns the ids of the bound user's operations that have no result yet, in the order of their submission. */
    public CompletableFuture<List<String>> pendingOperations() {
        return engine.withUser((store, userId) ->
            userId == null ? Collections.<String>emptyList() : store.outbox().pending(userId));
    }

    /** Sets the listener of the bound user's results; null removes it. */
    public void listenForResults(SyncResultListener listener) {
        engine.setResultReader(listener);
    }

    /** Records that the app has processed a result. The record is on the disk when the future completes. */
    public CompletableFuture<Void> confirm(SyncOperationResult result) {
        return engine.onStore(store -> {
            store.outbox().confirm(result);
            return null;
        });
    }

    // Store.

    /**
     * Encrypts the local store with another key, in one transaction; null removes the encryption. The app must open
     * the store with this key from then on.
     *
     * @return completes with STORE after an error; then the previous key stays in force
     * @throws SyncException INVALID_ARGUMENT when the key does not have 32 bytes
     */
    public CompletableFuture<Void> changeStoreKey(byte[] key) {
        PayloadCipher cipher = PayloadCipher.of(key);
        return engine.onStore(store -> {
            store.changeCipher(cipher);
            return null;
        });
    }

    /**
     * Returns whether the local store was damaged when this client was created. The client then moved the file aside,
     * with the suffix {@code .damaged}, and began a new store under a new store id. Stored oplogs that the app had not
     * processed are lost; {@link #recover} and {@link #history} fetch those that the server still has.
     */
    public boolean replacedDamagedStore() {
        return engine.replacedDamagedStore();
    }

    /** Returns what this client has done. */
    public SyncCounters counters() {
        return engine.counters();
    }

    /**
     * Ends the connection, waits for the listeners' present calls, and closes the store. Their confirmations are then
     * on the disk. Waits at most 12 s. With an executor of the app, it does not wait for listeners. Calls without a
     * result by then complete with CLOSED.
     */
    @Override
    public void close() {
        engine.close();
    }
}
