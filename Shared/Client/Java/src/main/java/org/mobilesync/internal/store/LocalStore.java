package org.mobilesync.internal.store;

import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.internal.Clock;

/**
 * The received data of a client in one SQLite file. Oplogs and positions change in one transaction (K8).
 *
 * <p>The server does not send an acknowledged oplog again, so a commit must survive a power failure. One thread at a
 * time uses the store.
 */
public final class LocalStore implements AutoCloseable {
    private final StoreFile file;
    private final Channels channels;
    private final ServiceClock clock;
    private final DeviceRecord device;
    private final StoreSpace space;
    private final Oplogs oplogs;
    private final Unreported unreported;
    private final SuspendedTypes suspended;
    private final Parameters parameters;
    private final Outbox outbox;
    private final PushStore pushes;
    private final HistoryStore history;
    private final Recoveries recoveries;

    private LocalStore(StoreFile file, PayloadCipher cipher, Clock deviceClock, long limit) {
        this.file = file;
        StoreEncryption.use(file, cipher);
        channels = new Channels(file);
        clock = new ServiceClock(file, deviceClock);
        device = new DeviceRecord(file, channels);
        space = new StoreSpace(file, channels, limit);
        oplogs = new Oplogs(file, clock);
        unreported = new Unreported(file, channels);
        suspended = new SuspendedTypes(file, channels, oplogs);
        parameters = new Parameters(file);
        outbox = new Outbox(file, space, clock);
        pushes = new PushStore(file, channels, oplogs, outbox, space);
        history = new HistoryStore(file, channels, oplogs, space);
        recoveries = new Recoveries(file, channels, oplogs, space);
        outbox.forgetOld();
    }

    /**
     * Opens or creates the store.
     *
     * @param device the secret is used only for a new store
     * @param limit the largest size in bytes
     * @throws org.mobilesync.SyncException STORE, STORE_IN_USE, FOREIGN_STORE; STORE_KEY when it was encrypted with
     *     another key, or when the key is missing
     */
    public static LocalStore open(
        String path, DatabaseOpener opener, String instanceId, DeviceIdentity device, PayloadCipher cipher, long limit,
        Clock clock
    ) {
        StoreFile file = StoreFile.open(path, opener, instanceId, device);
        boolean isOpen = false;
        try {
            LocalStore store = new LocalStore(file, cipher, clock, limit);
            isOpen = true;
            return store;
        } finally {
            if (!isOpen) file.close();
        }
    }

    /** Returns the file. */
    public StoreFile file() {
        return file;
    }

    /** Returns the channels with their positions. */
    public Channels channels() {
        return channels;
    }

    /** Returns the service's time. */
    public ServiceClock clock() {
        return clock;
    }

    /** Returns the identity and the settings of the device. */
    public DeviceRecord device() {
        return device;
    }

    /** Returns the size limit. */
    public StoreSpace space() {
        return space;
    }

    /** Returns the hand-outs and confirmations. */
    public Oplogs oplogs() {
        return oplogs;
    }

    /** Returns the reports that the gateway has not recorded. */
    public Unreported unreported() {
        return unreported;
    }

    /** Returns the suspended Sync IDs. */
    public SuspendedTypes suspended() {
        return suspended;
    }

    /** Returns the subscription parameters. */
    public Parameters parameters() {
        return parameters;
    }

    /** Returns the operations and their results. */
    public Outbox outbox() {
        return outbox;
    }

    /** Returns the arrival of push frames. */
    public PushStore pushes() {
        return pushes;
    }

    /** Returns the histories and summaries. */
    public HistoryStore history() {
        return history;
    }

    /** Encrypts everything with another cipher. After an error the previous one stays in force. */
    public void changeCipher(PayloadCipher next) {
        StoreEncryption.change(file, next);
    }

    /** Returns the recoveries. */
    public Recoveries recoveries() {
        return recoveries;
    }

    @Override
    public void close() {
        file.close();
    }
}
