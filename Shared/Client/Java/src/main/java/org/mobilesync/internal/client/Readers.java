package org.mobilesync.internal.client;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import org.mobilesync.SyncBatch;
import org.mobilesync.SyncBatchListener;
import org.mobilesync.SyncException;
import org.mobilesync.internal.delivery.OplogDelivery;

/**
 * The app's listeners of data. Each one has at most one batch at a time; the next is handed out after its call returns.
 * All methods run on the event loop.
 */
final class Readers {
    /** One registration. */
    static final class Reader {
        /** The Sync ID; null for all. */
        private final String bizType;
        private final int limit;
        private final SyncBatchListener listener;
        /** A call is on its way to the listener, or runs. */
        private boolean isBusy;
        private volatile boolean isClosed;

        Reader(String bizType, int limit, SyncBatchListener listener) {
            this.bizType = bizType;
            this.limit = limit;
            this.listener = listener;
        }

        private boolean overlaps(Reader other) {
            return bizType == null || other.bizType == null || bizType.equals(other.bizType);
        }

        /** Ends the calls at once; callable from any thread. */
        void close() {
            isClosed = true;
        }
    }

    private final ClientEngine engine;
    private final OplogDelivery delivery;
    private final List<Reader> readers = new ArrayList<>();
    /** Removed readers whose call has not returned. Later data of their Sync IDs waits, so that the order stays. */
    private final List<Reader> ending = new ArrayList<>();

    Readers(ClientEngine engine, OplogDelivery delivery) {
        this.engine = engine;
        this.delivery = delivery;
    }

    void add(Reader reader) {
        readers.add(reader);
    }

    void remove(Reader reader) {
        if (readers.remove(reader) && reader.isBusy) ending.add(reader);
    }

    /** Returns whether the app reads this Sync ID now. */
    boolean isRead(String bizType) {
        for (Reader reader : readers) {
            if (reader.bizType == null || reader.bizType.equals(bizType)) return true;
        }
        return false;
    }

    /** Hands available data to the readers that are free. Returns whether a resend was handed out. */
    boolean pump() {
        boolean hasResend = false;
        for (Reader reader : new ArrayList<>(readers)) {
            if (reader.isBusy || reader.isClosed || waitsForAnother(reader)) continue;
            SyncBatch batch =
                delivery.next(reader.bizType, engine.state().visibleUserId(), reader.limit, engine.nowMs());
            if (batch == null) continue;
            // Before the call, because an executor can run it at once.
            reader.isBusy = true;
            if (!engine.events().callBack(() -> call(reader, batch))) {
                reader.isBusy = false;
                putBack(batch);
                engine.pumpLater();
                break;
            }
            hasResend |= batch.oplogs().stream().anyMatch(oplog -> oplog.repeats() > 0);
            engine.counts().handedOut(batch.oplogs().size());
        }
        return hasResend;
    }

    private boolean waitsForAnother(Reader reader) {
        return ending.stream().anyMatch(reader::overlaps);
    }

    /** Calls a listener, on the callback executor. */
    private void call(Reader reader, SyncBatch batch) {
        // The app may have ended the registration or bound another user since the hand-out. Then the data waits again.
        boolean isWanted = !reader.isClosed && engine.isVisible(batch.userId());
        try {
            if (isWanted) reader.listener.onBatch(batch);
        } catch (Throwable error) {
            // Code in other languages also throws checked exceptions.
            Events.LOG.log(Level.WARNING, "a data listener of the app failed; its data comes again", error);
            engine.events().send(listener -> listener.onListenerFailed(error));
        } finally {
            engine.event(() -> {
                reader.isBusy = false;
                ending.remove(reader);
                if (!isWanted) putBack(batch);
                engine.pump();
            });
        }
    }

    private void putBack(SyncBatch batch) {
        try {
            delivery.putBack(batch);
        } catch (SyncException error) {
            // The data comes again on the resend ladder.
            engine.storeFailed(error);
        }
    }
}
