package org.mobilesync.internal.client;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.logging.Level;
import org.mobilesync.SyncBatchListener;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncCounters;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncParameter;
import org.mobilesync.SyncParameterKind;
import org.mobilesync.SyncPushToken;
import org.mobilesync.SyncResultListener;
import org.mobilesync.SyncStatus;
import org.mobilesync.internal.connection.GatewayAddress;
import org.mobilesync.internal.delivery.OplogDelivery;
import org.mobilesync.internal.network.TlsConnector;
import org.mobilesync.internal.store.Channel;
import org.mobilesync.internal.store.DeviceIdentity;
import org.mobilesync.internal.store.LocalStore;
import org.mobilesync.internal.store.PayloadCipher;
import org.mobilesync.internal.store.StoreOutcome;

/**
 * Owns the local store, and serves the app and the connection, one event at a time on its event loop.
 *
 * <p>After every event it performs the steps whose time has come, and plans the next timer.
 */
public final class ClientEngine implements AutoCloseable {
    private static final long NANOS_PER_MS = 1_000_000;
    /** The longest pause between two looks at the timers while a connection lives. */
    private static final long LONGEST_PAUSE_MS = 30_000;
    private static final long NEVER = Long.MAX_VALUE;
    private static final long CLOSE_WAIT_MS = 5_000;
    /** The pause after the callback executor has rejected a task. */
    private static final long REJECTED_PAUSE_MS = 1_000;

    private final SyncConfiguration configuration;
    private final EventLoop loop;
    /** The client's own callback thread; null when the app has an executor. */
    private final ExecutorService ownCallbacks;
    private final Events events;
    private final LocalStore store;
    private final ClientState state = new ClientState();
    private final Counts counts;
    private final OplogDelivery delivery;
    private final Readers readers;
    private final ResultReaders results;
    private final ParameterValues parameters;
    private final ConnectionDriver driver;
    private final Supervisor supervisor;
    private final Lists lists;
    private final RecoveryRequests recoveries;
    private final Object bindLock = new Object();
    /** The user whose data the app may receive now, for the callback thread; changes under bindLock. */
    private volatile String boundUserId;
    private ScheduledFuture<?> timer;
    private long timerAtMs = NEVER;
    private boolean isPumpPlanned;
    /** No connection and no hand-out follows. */
    private boolean isStopping;
    /** The store is closed. */
    private boolean isClosed;
    private volatile Thread callbackThread;

    /** Opens the local store. The client does not connect before {@link #connect}. */
    public ClientEngine(SyncConfiguration configuration) {
        this.configuration = configuration;
        TlsConnector connector = new TlsConnector(
            configuration.trust(), configuration.identity(), configuration.transport(),
            configuration.connectTimeoutMs());
        store = LocalStore.open(configuration.storePath(), configuration.database(), configuration.instanceId(),
            new DeviceIdentity(configuration.deviceId(), configuration.deviceSecret()),
            PayloadCipher.of(configuration.storeKey()), configuration.storeLimit(), configuration.clock());
        boolean isComplete = false;
        try {
            ownCallbacks = configuration.callbackExecutor() == null ? makeCallbackThread() : null;
            Executor callbacks = ownCallbacks == null ? configuration.callbackExecutor() : ownCallbacks;
            events = new Events(callbacks);
            loop = new EventLoop(this::failed);
            counts = new Counts(store.file().replacements());
            if (store.file().replacedDamaged()) {
                Events.LOG.log(Level.WARNING,
                    "the local store was damaged; it was moved aside, and a new one began: {0}",
                    configuration.storePath());
            }
            state.deviceId = store.device().deviceId();
            delivery = new OplogDelivery(store, configuration.firstResendMs(), this::isCounted, this::storeFailed);
            readers = new Readers(this, delivery);
            results = new ResultReaders(this, store.outbox());
            parameters = new ParameterValues(store.parameters());
            driver = new ConnectionDriver(this, new ConnectBuilder(configuration, store, state, parameters));
            GatewayAddress home = new GatewayAddress(configuration.host(), configuration.port());
            supervisor = new Supervisor(this, connector, home, driver, configuration.connectTimeoutMs());
            recoveries = new RecoveryRequests(this, driver, store.recoveries());
            lists = new Lists(this, driver, store.history());
            isComplete = true;
        } finally {
            // Otherwise the store would stay locked in this process.
            if (!isComplete) store.close();
        }
    }

    private ExecutorService makeCallbackThread() {
        return Executors.newSingleThreadExecutor(work -> {
            Thread thread = new Thread(work, "mobile-sync-callbacks");
            thread.setDaemon(true);
            callbackThread = thread;
            return thread;
        });
    }

    // For the parts of the client.

    LocalStore store() {
        return store;
    }

    ClientState state() {
        return state;
    }

    Events events() {
        return events;
    }

    Counts counts() {
        return counts;
    }

    /** Returns the milliseconds of a clock that never goes back. */
    long nowMs() {
        return configuration.clock().nanoTime() / NANOS_PER_MS;
    }

    /** Performs an event on the loop, and then the steps whose time has come. */
    void event(Runnable event) {
        loop.execute(() -> {
            if (isClosed) return;
            event.run();
            settle();
        });
    }

    /** Performs a step on the loop after a delay. */
    void later(Runnable step, long delayMs) {
        if (!isClosed) loop.schedule(step, delayMs);
    }

    private <T> CompletableFuture<T> call(Supplier<T> call) {
        return loop.submit(() -> {
            if (isClosed) throw EventLoop.closed();
            try {
                return call.get();
            } finally {
                settle();
            }
        });
    }

    private void settle() {
        if (isStopping) return;
        supervisor.settle();
        long now = nowMs();
        long next = Math.min(supervisor.deadlineMs(), delivery.nextDueMs(now));
        if (driver.isOpen()) next = Math.min(next, now + LONGEST_PAUSE_MS);
        if (next == NEVER || next >= timerAtMs && timerAtMs > now) return;
        if (timer != null) timer.cancel(false);
        timerAtMs = next;
        timer = loop.schedule(() -> {
            timerAtMs = NEVER;
            if (isClosed) return;
            tick();
            settle();
        }, next - now);
    }

    private void tick() {
        if (driver.isOpen() || driver.deadlineMs() != NEVER) driver.ticked();
        try {
            if (delivery.processDue(nowMs())) driver.reportOplogs();
        } catch (SyncException error) {
            storeFailed(error);
        }
        pump();
    }

    /** Hands available data and results to the app. */
    void pump() {
        if (isStopping) return;
        try {
            // The gateway needs a report of each resend.
            if (readers.pump()) driver.reportOplogs();
            results.pump();
        } catch (SyncException error) {
            storeFailed(error);
        }
    }

    /** Hands data out again soon, after the callback executor has rejected some. */
    void pumpLater() {
        if (isPumpPlanned) return;
        isPumpPlanned = true;
        later(() -> event(() -> {
            isPumpPlanned = false;
            pump();
        }), REJECTED_PAUSE_MS);
    }

    /** Handles the outcome of a stored push. */
    void stored(StoreOutcome outcome) {
        counts.stored(outcome.storedOplogs);
        if (!outcome.filledChannels.isEmpty()) delivery.markUnread(outcome.filledChannels);
        pump();
    }

    /** Handles that the gateway has accepted the connect. */
    void connected(long firstResendMs) {
        counts.connected();
        delivery.setFirstResend(firstResendMs);
        delivery.updateClocks(nowMs());
        setStatus(SyncStatus.CONNECTED);
        recoverRefused();
    }

    /** Continues recoveries, also those that the gateway has refused. */
    void recoverRefused() {
        recoveries.continueRefused();
    }

    /** Continues recoveries. */
    void recover() {
        recoveries.next();
    }

    /** Handles data that a recovery has brought. */
    void recovered(long channelRow) {
        delivery.markUnread(Collections.singleton(channelRow));
        pump();
    }

    /** Handles the end of a connection. */
    void connectionEnded() {
        delivery.updateClocks(nowMs());
    }

    /** Records and publishes a failure of the local store. */
    void storeFailed(SyncException error) {
        counts.storeFailed();
        Events.LOG.log(Level.SEVERE, "the local store failed", error);
        events.send(listener -> listener.onStoreFailed(error));
    }

    private void failed(Throwable error) {
        Events.LOG.log(Level.SEVERE, "an event of the client failed; the connection is made again", error);
        driver.lost("an event of the client failed: " + error);
        settle();
    }

    void setStatus(SyncStatus status) {
        if (state.status == status) return;
        state.status = status;
        events.send(listener -> listener.onStatus(status));
    }

    /** Returns whether the app may receive data of this user now; null is the device. Callable from any thread. */
    boolean isVisible(String userId) {
        return userId == null || userId.equals(boundUserId);
    }

    private boolean isCounted(long row) {
        Channel channel = store.channels().byRow(row);
        return channel != null && driver.isOpen() && channel.isVisible(state.visibleUserId())
            && readers.isRead(channel.bizType()) && !store.suspended().contains(channel.bizType());
    }

    // For the app; callable from any thread.

    /** Adds a listener of events. */
    public void addListener(SyncEventListener listener) {
        events.add(listener);
    }

    /** Removes a listener of events. */
    public void removeListener(SyncEventListener listener) {
        events.remove(listener);
    }

    /** Allows connections. */
    public CompletableFuture<Void> connect() {
        return change(() -> {
            state.setWanted(true);
            supervisor.start();
        });
    }

    /** Ends the connection, and makes no other. */
    public CompletableFuture<Void> disconnect() {
        return change(() -> state.setWanted(false));
    }

    /** Performs a change of the app's wishes, and tells the connection. */
    private CompletableFuture<Void> change(Runnable change) {
        return call(() -> {
            change.run();
            if (isStopping) return null;
            supervisor.stateChanged();
            delivery.updateClocks(nowMs());
            pump();
            return null;
        });
    }

    /** Binds a user; null for both unbinds. */
    public CompletableFuture<Void> bind(String userId, String sessionId) {
        // Concurrent calls must reach the callback thread and the loop in the same order.
        synchronized (bindLock) {
            boundUserId = userId;
            return change(() -> {
                if (!Objects.equals(userId, state.visibleUserId())) parameters.userChanged(userId);
                if (userId == null) {
                    state.unbind();
                } else {
                    state.bind(userId, sessionId);
                }
            });
        }
    }

    /** Records that the app entered or left the foreground. */
    public CompletableFuture<Void> setForeground(boolean isForeground) {
        return change(() -> state.setForeground(isForeground, configuration.backgroundTimeMs(), nowMs()));
    }

    /** Records the device's network. */
    public CompletableFuture<Void> setNetwork(boolean isAvailable, String name) {
        return change(() -> {
            if (state.setNetwork(isAvailable, name)) supervisor.reconnect();
        });
    }

    /** Adds a reader of data, and returns the call that removes it. */
    public Runnable addReader(String bizType, int limit, SyncBatchListener listener) {
        Readers.Reader reader = new Readers.Reader(bizType, limit, listener);
        event(() -> {
            readers.add(reader);
            delivery.updateClocks(nowMs());
            pump();
        });
        return () -> {
            reader.close();
            event(() -> {
                readers.remove(reader);
                delivery.updateClocks(nowMs());
            });
        };
    }

    /** Sets the reader of results; null removes it. */
    public void setResultReader(SyncResultListener listener) {
        event(() -> {
            results.set(listener);
            pump();
        });
    }

    /** Records durably that the app has processed oplogs. */
    public CompletableFuture<Void> confirm(List<SyncOplog> oplogs) {
        List<SyncOplog> copy = new ArrayList<>(oplogs);
        return call(() -> {
            delivery.confirm(copy);
            counts.confirmed(copy.size());
            driver.reportOplogs();
            return null;
        });
    }

    /** Performs a step on the store, for a call that does not concern the connection. */
    public <T> CompletableFuture<T> onStore(Function<LocalStore, T> step) {
        return call(() -> step.apply(store));
    }

    /** Suspends or resumes a Sync ID. */
    public CompletableFuture<Void> setSuspended(String bizType, boolean isSuspended, boolean deletesData) {
        return call(() -> {
            store.suspended().set(bizType, isSuspended);
            if (deletesData) store.suspended().deleteData(bizType, state.visibleUserId());
            driver.subscriptionsChanged();
            delivery.updateClocks(nowMs());
            pump();
            recover();
            return null;
        });
    }

    /** Requests all data of a Sync ID again. */
    public CompletableFuture<Void> beginRecovery(String bizType) {
        return call(() -> {
            store.recoveries().begin(bizType, state.visibleUserId());
            recover();
            return null;
        });
    }

    /** Sets a parameter of the bound user, or of the device when no user is bound. */
    public CompletableFuture<Void> setParameter(SyncParameter parameter) {
        return call(() -> {
            String userId = state.visibleUserId();
            boolean isServer = parameter.kind() == SyncParameterKind.SERVER;
            if (isServer && userId == null) {
                throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                    "a value of the kind SERVER belongs to a user: bind a user first");
            }
            parameters.set(parameter, userId);
            if (isServer) {
                driver.sendParameters();
            } else {
                driver.subscriptionsChanged();
            }
            return null;
        });
    }

    /** Returns all parameters of the bound user, or of the device when no user is bound. */
    public CompletableFuture<List<SyncParameter>> parameters() {
        return call(() -> parameters.all(state.visibleUserId()));
    }

    /** Stores the push token; when it has changed, the client connects again to report it. */
    public CompletableFuture<Void> setPushToken(SyncPushToken token) {
        return call(() -> {
            if (store.device().setPushToken(token)) supervisor.reconnect();
            return null;
        });
    }

    /** Stores operations, and sends them when there is a connection. */
    public CompletableFuture<Void> submit(List<SyncOperation> operations) {
        return call(() -> {
            String owner = state.visibleUserId();
            if (owner == null) {
                throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                    "no user is bound: bind a user, then submit the operations again");
            }
            store.outbox().add(operations, owner);
            driver.sendOperations();
            return null;
        });
    }

    /** Calls a step with the bound user on the loop. */
    public <T> CompletableFuture<T> withUser(BiFunction<LocalStore, String, T> step) {
        return call(() -> step.apply(store, state.visibleUserId()));
    }

    /** Returns the histories and summaries. */
    public Lists lists() {
        return lists;
    }

    /** Performs a step on the loop, for a call with several steps. A closed client passes CLOSED to onFailure. */
    void step(Runnable step, Consumer<Throwable> onFailure) {
        CompletableFuture<Void> result = call(() -> {
            step.run();
            return null;
        });
        result.whenComplete((nothing, error) -> {
            if (error != null) onFailure.accept(error);
        });
    }

    /** Returns a result of a call with several steps. At the end of the client it completes with CLOSED. */
    <T> CompletableFuture<T> result() {
        return loop.result();
    }

    /** Returns the status. */
    public SyncStatus status() {
        return state.status;
    }

    /** Returns the device id that the service knows. */
    public String deviceId() {
        return state.deviceId;
    }

    /** Returns whether the complete backlog of the last connect or bind has arrived. */
    public boolean isCaughtUp() {
        return state.isCaughtUp;
    }

    /** Returns whether a damaged store was replaced when this client was created. */
    public boolean replacedDamagedStore() {
        return store.file().replacedDamaged();
    }

    /** Returns the counts. */
    public SyncCounters counters() {
        return counts.snapshot();
    }

    /**
     * Ends the connection, waits for the listeners' present calls, and closes the store, so that their confirmations
     * are on the disk. Waits at most 5 s for the listeners, 5 s for the store and 2 s for the connection. A call by a
     * listener does not wait for that listener. A call by a continuation of a future, on the loop's thread, does not
     * wait.
     */
    @Override
    public void close() {
        boolean waits = !loop.isCurrentThread();
        loop.execute(() -> {
            isStopping = true;
            supervisor.stop();
        });
        if (ownCallbacks != null) {
            ownCallbacks.shutdown();
            if (waits && Thread.currentThread() != callbackThread) await(ownCallbacks::awaitTermination);
        }
        loop.execute(() -> {
            if (isClosed) return;
            isClosed = true;
            store.close();
        });
        loop.shutdown();
        if (!waits) return;
        await(loop::awaitEnd);
        await((timeout, unit) -> {
            supervisor.awaitClosed();
            return true;
        });
    }

    private interface Wait {
        boolean await(long timeout, TimeUnit unit) throws InterruptedException;
    }

    private static void await(Wait wait) {
        try {
            wait.await(CLOSE_WAIT_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
